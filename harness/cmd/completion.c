/* Completions of shells: what follows "foldline", out of the same rows as the help. */
#include "harness/cmd/completion.h"

#include "harness/base/cli/place_list.h"
#include "harness/cmd/topics.h"
#include "harness/input/platform/platform.h"
#include "policies/registry/registry.h"

#include <string.h>

#define NAME(name, summary) #name,

typedef struct values { /* of options whose values are names of a list */
    const char *option, *list;
} values;

static const values of_lists[] = {
    {"policy", "policies"}, {"reference", "policies"}, {"platform", "platforms"}, {"base", "platforms"}};
enum { OF_LISTS = sizeof of_lists / sizeof *of_lists };

static const char *list_of(const char *option) {
    for (size_t i = 0; i < OF_LISTS; i++)
        if (!strcmp(of_lists[i].option, option))
            return of_lists[i].list;
    return NULL;
}

typedef struct shell { /* how it sets a list: before NAME= open ... close */
    FILE *out;
    const char *before, *open, *close;
} shell;

static void put_list(const shell *to, const char *list, const char *const *name, size_t count) {
    fprintf(to->out, "%s%s=%s", to->before, list, to->open);
    for (size_t i = 0; i < count; i++)
        fprintf(to->out, "%s%s", i ? " " : "", name[i]);
    fprintf(to->out, "%s\n", to->close);
}

static fl_status put_lists(const shell *to, fl_diag *d) {
    static const char *const commands[] = {FL_COMMANDS(NAME)}, *const fits[] = {FL_FITS(NAME)},
                             *const synths[] = {FL_SYNTHS(NAME)};
    char **platform = NULL, **board = NULL;
    size_t platforms = 0, boards = 0;
    fl_status s = fl_platform_list(&platform, &platforms, d);
    if (!s)
        s = fl_place_list(FL_PLACE_BOARDS, &board, &boards, d);
    put_list(to, "commands", commands, sizeof commands / sizeof *commands);
    put_list(to, "fits", fits, sizeof fits / sizeof *fits);
    put_list(to, "synths", synths, sizeof synths / sizeof *synths);
    put_list(to, "topics", fl_topics, fl_topics_count);
    fprintf(to->out, "%spolicies=%s", to->before, to->open);
    for (size_t i = 0; i < fl_policies_count; i++)
        fprintf(to->out, "%s%s", i ? " " : "", fl_policies[i]->name);
    fprintf(to->out, "%s\n", to->close);
    put_list(to, "platforms", (const char *const *)platform, platforms);
    put_list(to, "boards", (const char *const *)board, boards);
    fl_place_list_free(platform, platforms);
    fl_place_list_free(board, boards);
    return s;
}

static void bash_options(void *to, const fl_command_help *help, const fl_option *option, size_t count) {
    FILE *out = to;
    fprintf(out, "    '%s') options='", help->name);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s ", option[i].name[1] ? "--" : "-", option[i].name);
    fprintf(out, "--help' valued='");
    for (size_t i = 0; i < count; i++)
        if (option[i].value)
            fprintf(out, "%s%s ", option[i].name[1] ? "--" : "-", option[i].name);
    fprintf(out, "' ;;\n");
}

fl_status fl_completion_bash(FILE *out, fl_command_runner run, fl_diag *d) {
    fprintf(out, "# bash completion of foldline, which wrote it: foldline help --write DIR\n_foldline() {\n"
                 "  local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) list= options= valued=\n");
    const fl_status s = put_lists(&(shell){out, "  local ", "'", "'"}, d);
    /* bash takes "=" for a word of its own. */
    fprintf(out, "  if [[ $cur == = ]]; then cur=; elif [[ ${COMP_WORDS[at]} == = ]]; then at=$((at - 1)); fi\n"
                 "  local prev=${COMP_WORDS[at]} command=${COMP_WORDS[1]} part=${COMP_WORDS[2]}\n"
                 "  [[ $command == fit && \" $fits \" == *\" $part \"* ]] && command=\"fit $part\"\n"
                 "  [[ $command == synth && \" $synths \" == *\" $part \"* ]] && command=\"synth $part\"\n"
                 "  case $command in\n");
    fl_pages_read(run, (fl_command_reader){bash_options, out});
    fprintf(out, "  esac\n  if ((COMP_CWORD == 1)); then\n    list=\"$commands --help --version\"\n"
                 "  elif [[ \" $valued \" == *\" $prev \"* ]]; then\n    case $prev in\n");
    for (size_t i = 0; i < OF_LISTS; i++)
        fprintf(out, "    --%s) list=$%s ;;\n", of_lists[i].option, of_lists[i].list);
    fprintf(out,
            "    esac\n  elif [[ $cur == -* ]]; then\n    list=$options\n  else\n    case $COMP_CWORD/$command in\n"
            "    2/fit*) list=$fits ;;\n    2/synth*) list=$synths ;;\n"
            "    3/help) [[ $part == fit ]] && list=$fits; [[ $part == synth ]] && list=$synths ;;\n"
            "    2/help) list=\"$commands $topics\" ;;\n    2/policies) list=$policies ;;\n"
            "    2/platforms) list=\"$platforms $boards\" ;;\n    esac\n  fi\n"
            "  mapfile -t COMPREPLY < <(compgen -W \"$list\" -- \"$cur\")\n}\n"
            "complete -o default -F _foldline foldline\n");
    return s;
}

/* Inside of '[...]' of _arguments, in single quotes. */
static void put_zsh(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", out);
        else if (strchr("[]:\\", *text))
            putc('\\', out);
        putc(*text == '\n' ? ' ' : *text, out);
    }
}

static void zsh_options(void *to, const fl_command_help *help, const fl_option *option, size_t count) {
    FILE *out = to;
    fprintf(out, "    '%s') options=(", help->name);
    for (size_t i = 0; i < count; i++) {
        const char *list = list_of(option[i].name);
        fprintf(out, "\n      '*%s%s[", option[i].name[1] ? "--" : "-", option[i].name);
        put_zsh(out, option[i].help);
        putc(']', out);
        if (option[i].value) {
            putc(':', out);
            put_zsh(out, option[i].value);
            fprintf(out, list ? ":{compadd -a %s || _files}" : ":_files", list);
        }
        putc('\'', out);
    }
    fprintf(out, ") ;;\n");
}

fl_status fl_completion_zsh(FILE *out, fl_command_runner run, fl_diag *d) {
    fprintf(out, "#compdef foldline\n# zsh completion of foldline, which wrote it: foldline help --write DIR\n"
                 "_foldline() {\n  local -a options first\n");
    const fl_status s = put_lists(&(shell){out, "  local -a ", "(", ")"}, d);
    fprintf(out, "  local command=$words[2]\n"
                 "  (( CURRENT == 2 )) && { compadd -a commands; compadd -- --help --version; return }\n"
                 "  [[ $command == fit ]] && (( ${fits[(Ie)$words[3]]} )) && command=\"fit $words[3]\"\n"
                 "  [[ $command == synth ]] && (( ${synths[(Ie)$words[3]]} )) && command=\"synth $words[3]\"\n"
                 "  case $command in\n");
    fl_pages_read(run, (fl_command_reader){zsh_options, out});
    fprintf(out, "  esac\n  if (( CURRENT == 3 )) && [[ $words[3] != -* ]]; then\n    case $words[2] in\n"
                 "    fit) first=($fits) ;;\n    synth) first=($synths) ;;\n    help) first=($commands $topics) ;;\n"
                 "    policies) first=($policies) ;;\n    platforms) first=($platforms $boards) ;;\n    esac\n"
                 "    (( $#first )) && { compadd -a first; return }\n  fi\n"
                 "  _arguments $options '--help[this text]' '*:file:_files'\n}\n_foldline \"$@\"\n");
    return s;
}
