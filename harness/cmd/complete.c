/* Completions of shells: what follows "foldline", out of the same rows as the help. */
#include "harness/cmd/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/input/platform/platform.h"
#include "harness/report/picture/picture.h"
#include "policies/registry/registry.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct { /* options whose values are names of a list */
    const char *option, *list;
} of_lists[] = {{"policy", "policies"}, {"reference", "policies"}, {"platform", "platforms"}, {"base", "platforms"}};
enum { OF_LISTS = sizeof of_lists / sizeof *of_lists };

void fl_command_rows_read(fl_command_reader reader) {
    static char wanted[] = "--help";
    fl_command_read_by = &reader;
    for (size_t i = 0; i < fl_command_rows_count; i++)
        (void)fl_command_rows[i].run(1, (char *[]){wanted, NULL});
    fl_command_read_by = NULL;
}

static void put_names(FILE *out, const char *const *name, size_t count) {
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s ", name[i]);
}

/* The names of a command's parts. "" is the program. */
static void put_parts(FILE *out, const char *command) {
    for (size_t i = 0; i < fl_command_rows_count; i++)
        if (fl_part_of(&fl_command_rows[i], command))
            fprintf(out, "%s ", fl_part_name(&fl_command_rows[i]));
}

/* What may follow the command's name: its parts, or names of a list. */
static void put_first(FILE *out, const char *command) {
    static const struct {
        const char *command, *lists;
    } first[] = {{"help", "$commands $topics"},
                 {"list policies", "$policies"},
                 {"list platforms", "$platforms $boards"},
                 {"plot", "$kinds"}};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        fprintf(out, "%s", strcmp(first[i].command, command) ? "" : first[i].lists);
    put_parts(out, command);
}

/* The lists as variables of the shell, each between `open` and `close`; and the names of all commands, with colons
 * between, by which the shell finds the longest one that was typed. */
static fl_status put_lists(FILE *out, const char *local, const char *open, const char *close, fl_diag *d) {
    char **name = NULL;
    size_t count = 0, kinds = 0;
    while (fl_plot_kinds[kinds])
        kinds++;
    fprintf(out, "  %s commands=%s", local, open);
    put_parts(out, "");
    fprintf(out, "%s topics=%s", close, open);
    put_names(out, fl_topics, fl_topics_count);
    fprintf(out, "%s kinds=%s", close, open);
    put_names(out, fl_plot_kinds, kinds);
    fprintf(out, "%s policies=%s", close, open);
    for (size_t i = 0; i < fl_policies_count; i++)
        fprintf(out, "%s ", fl_policies[i]->name);
    fprintf(out, "%s platforms=%s", close, open);
    fl_status s = fl_platform_list(&name, &count, d);
    put_names(out, (const char *const *)name, count);
    fl_place_list_free(name, count);
    fprintf(out, "%s boards=%s", close, open);
    if (!s)
        s = fl_place_list(FL_PLACE_BOARDS, &name, &count, d);
    put_names(out, (const char *const *)name, s ? 0 : count);
    if (!s)
        fl_place_list_free(name, count);
    fprintf(out, "%s\n  local known='", close);
    for (size_t i = 0; i < fl_command_rows_count; i++)
        fprintf(out, ":%s", fl_command_rows[i].name);
    fprintf(out, ":'\n");
    return s;
}

/* A function of the shell that knows the parameters of each policy. before, after: the command that takes them. */
static void put_params(FILE *out, const char *before, const char *after) {
    fprintf(out, "_foldline_params() {\n  case $1 in\n");
    for (size_t i = 0; i < fl_policies_count; i++) {
        fprintf(out, "  %s) %s", fl_policies[i]->name, before);
        for (uint32_t k = 0; k < fl_policies[i]->param_count; k++)
            fprintf(out, " %s=", fl_policies[i]->param[k].name);
        fprintf(out, "%s ;;\n", after);
    }
    fprintf(out, "  esac\n}\n");
}

/* The values that a row lists, "real|ideal|off", with blanks between. Names in capitals are no values. */
static bool put_values(FILE *out, const char *before, const fl_option *o) {
    if (!o->value || (o->type != FL_OPTION_CHOICE && !strchr(o->value, '|')) ||
        o->value[strcspn(o->value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")])
        return false;
    fprintf(out, "%s", before);
    for (const char *at = o->value; *at; at++)
        putc(*at == '|' ? ' ' : *at, out);
    return true;
}

static const char *dashes(const fl_option *o) { return o->name[1] ? "--" : "-"; }

static void bash_options(void *to, const fl_command_help *help, const fl_option *option, size_t count) {
    FILE *out = to;
    fprintf(out, "  '%s')\n    options='", help->name);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s ", dashes(&option[i]), option[i].name);
    fprintf(out, "--help' valued=' ");
    for (size_t i = 0; i < count; i++)
        if (option[i].value)
            fprintf(out, "%s%s ", dashes(&option[i]), option[i].name);
    fprintf(out, "' first=\"");
    put_first(out, help->name);
    fprintf(out, "\"\n    case $prev in\n");
    for (size_t i = 0; i < count; i++) {
        char before[96];
        snprintf(before, sizeof before, "    --%s) list='", option[i].name);
        if (put_values(out, before, &option[i]))
            fprintf(out, "' ;;\n");
    }
    fprintf(out, "    esac\n    ;;\n");
}

fl_status fl_completion_bash(FILE *out, fl_diag *d) {
    fprintf(out, "# bash completion of foldline, which wrote it: foldline help -o DIR\n");
    put_params(out, "echo '", "'");
    fprintf(out, "_foldline() {\n"
                 "  local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) list= options= valued= first= n=1 k=\n");
    const fl_status s = put_lists(out, "local", "'", "'", d);
    /* bash takes "=" and ":" for words of their own. */
    fprintf(out, "  local line=${COMP_LINE:0:${COMP_POINT:-0}}\n  local word=${line##*[[:space:]]} head=\n"
                 "  local -a typed=($line)\n"
                 "  if [[ $cur == [=:] ]]; then cur=; elif [[ ${COMP_WORDS[at]} == = ]]; then at=$((at - 1)); fi\n"
                 "  [[ ${COMP_WORDS[1]} == help ]] && ((COMP_CWORD > 2)) && n=2\n"
                 "  local prev=${COMP_WORDS[at]} command=${COMP_WORDS[n]}\n"
                 "  while ((n + 1 < COMP_CWORD)) && [[ $known == *\":$command ${COMP_WORDS[n + 1]}:\"* ]]; do\n"
                 "    n=$((n + 1)) command+=\" ${COMP_WORDS[n]}\"\n  done\n"
                 "  case $command in\n");
    fl_command_rows_read((fl_command_reader){bash_options, out});
    fprintf(out, "  esac\n  if ((COMP_CWORD == 1)); then\n    list=\"$commands --help --version\"\n"
                 "  elif [[ $word == *:* && ($word == --policy=* || ${typed[${#typed[@]} - 2]} == --policy) ]]; then\n"
                 "    word=${word#--policy=}\n    list=$(_foldline_params \"${word%%%%:*}\") word=${word##*[:,]}\n"
                 "    head=${cur%%\"$word\"}\n    compopt -o nospace 2>/dev/null\n"
                 "  elif [[ $prev == --set ]]; then\n"
                 "    for ((k = 1; k + 1 < ${#typed[@]}; k++)); do\n"
                 "      [[ ${typed[k]} == --policy ]] && list=$(_foldline_params \"${typed[k + 1]%%%%:*}\")\n    done\n"
                 "    compopt -o nospace 2>/dev/null\n"
                 "  elif [[ $prev == --help ]]; then\n    list=all\n"
                 "  elif [[ $valued == *\" $prev \"* ]]; then\n    case $prev in\n");
    for (size_t i = 0; i < OF_LISTS; i++)
        fprintf(out, "    --%s) list=$%s ;;\n", of_lists[i].option, of_lists[i].list);
    fprintf(out, "    esac\n  elif [[ $cur == -* ]]; then\n    list=$options\n"
                 "  elif ((COMP_CWORD == n + 1)); then\n    list=$first\n  fi\n"
                 "  mapfile -t COMPREPLY < <(compgen -P \"$head\" -W \"$list\" -- \"${cur#\"$head\"}\")\n}\n"
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

static void zsh_values(FILE *out, const fl_option *o) {
    putc(':', out);
    put_zsh(out, o->value);
    if (put_values(out, ":(", o)) {
        fprintf(out, ")");
        return;
    }
    for (size_t i = 0; i < OF_LISTS; i++)
        if (!strcmp(of_lists[i].option, o->name)) {
            fprintf(out, i ? ":{compadd -a %s || _files}" : ":{_foldline_policy || compadd -a %s || _files}",
                    of_lists[i].list);
            return;
        }
    fprintf(out, ":_files");
}

static void zsh_options(void *to, const fl_command_help *help, const fl_option *option, size_t count) {
    FILE *out = to;
    fprintf(out, "  '%s') options=(", help->name);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "\n    '*%s%s[", dashes(&option[i]), option[i].name);
        put_zsh(out, option[i].help);
        putc(']', out);
        if (option[i].value)
            zsh_values(out, &option[i]);
        putc('\'', out);
    }
    fprintf(out, ") first=(");
    put_first(out, help->name);
    fprintf(out, ") ;;\n");
}

fl_status fl_completion_zsh(FILE *out, fl_diag *d) {
    fprintf(out, "#compdef foldline\n# zsh completion of foldline, which wrote it: foldline help -o DIR\n");
    put_params(out, "compadd -S '' --", "");
    fprintf(out, "_foldline_policy() {\n  local name=${${words[CURRENT]#--policy=}%%%%:*}\n"
                 "  compset -P '*[:,]' && _foldline_params $name\n}\n"
                 "_foldline() {\n  local -a options first\n  integer n=2\n");
    const fl_status s = put_lists(out, "local -a", "(", ")", d);
    fprintf(out, "  (( CURRENT == 2 )) && { compadd -a commands; compadd -- --help --version; return }\n"
                 "  [[ $words[2] == help ]] && (( CURRENT > 3 )) && n=3\n"
                 "  local command=$words[n]\n"
                 "  while (( n + 1 < CURRENT )) && [[ $known == *\":$command $words[n+1]:\"* ]]; do\n"
                 "    (( n += 1 )); command+=\" $words[n]\"\n  done\n"
                 "  [[ $words[CURRENT-1] == --help ]] && { compadd all; return }\n"
                 "  case $command in\n");
    fl_command_rows_read((fl_command_reader){zsh_options, out});
    fprintf(out, "  esac\n  if (( CURRENT == n + 1 )) && [[ $words[CURRENT] != -* ]]; then\n"
                 "    (( $#first )) && { compadd -a first; return }\n  fi\n"
                 "  _arguments $options '--help[this text]' '*:file:_files'\n}\n_foldline \"$@\"\n");
    return s;
}
