"""The mutants of a C file: each changes one token, or drops one statement, inside a function or in a named constant.

A mutant is known by its file, its function, its kind and the tokens around it, never by line or layout, so that a list of
mutants outlives what moves or reformats the code.
"""
import collections
import hashlib
import re

Token = collections.namedtuple("Token", "kind text at")
# edits: (from, to, new text) of the file's text, in order
Mutant = collections.namedtuple("Mutant", "file function kind context line edits")

TOKEN = re.compile(
    r"(?P<skip>\s+|/\*.*?\*/|//[^\n]*)"
    r"|(?P<directive>(?<![^\n])[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*)"
    r'|(?P<string>"(?:\\.|[^"\\])*")'
    r"|(?P<char>'(?:\\.|[^'\\])*')"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<op><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)",
    re.S,
)
TYPES = set(
    "const static struct union enum unsigned signed int char double float void bool long short typedef volatile register"
    " extern inline".split()
)
WORDS = set("return case sizeof else do goto if while for switch default break continue _Static_assert".split())
COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
TURNED = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "&": "|", "|": "&", "<<": ">>", ">>": "<<"}
TURNED.update({"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|=", "++": "--", "--": "++"})
JOINED = {"&&": "||", "||": "&&"}
NAMED = {"true": "false", "false": "true"}
NUMERIC = re.compile(r'"-?\d+(\.\d+)?(e-?\d+)?"')
CLOSES = {"(": ")", "[": "]", "{": "}"}


def tokens_of(text):
    found = []
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        kind = match.lastgroup
        # A directive is matched before white space only where it begins its line.
        if kind == "skip" and match.group().isspace():
            line = re.compile(r"[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.S)
            newline = match.group().rfind("\n")
            directive = line.match(text, at + newline + 1) if newline >= 0 else None
            if directive:
                at = directive.end()
                continue
        if kind not in ("skip", "directive"):
            found.append(Token(kind, match.group(), at))
        at = match.end()
    return found


def moved(number):
    """The constant next to it: 0 and 1 change places, n becomes n + 1, a real becomes 1.1 times as large."""
    whole = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", number)
    if whole:
        value = int(whole[1], 0) if whole[1][:2] in ("0x", "0X") or whole[1] == "0" else int(whole[1].lstrip("0") or "0")
        return str({0: 1, 1: 0}.get(value, value + 1)) + whole[2]
    real = re.fullmatch(r"([\d.]+(?:[eE][+-]?\d+)?)([fFlL]?)", number)
    if not real:
        return None
    value = float(real[1])
    return (repr(value * 1.1) if value else "1.0") + real[2]


class File:
    """Reads one file: where its functions are, its brackets' partners, and the statements."""

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.tokens = tokens_of(text)
        self.partner = self.match_brackets()
        self.found = []

    def match_brackets(self):
        partner, open_ones = {}, []
        for i, t in enumerate(self.tokens):
            if t.kind == "op" and t.text in CLOSES:
                open_ones.append(i)
            elif t.kind == "op" and t.text in CLOSES.values() and open_ones:
                j = open_ones.pop()
                partner[i], partner[j] = j, i
        return partner

    def is_op(self, i, *texts):
        return 0 <= i < len(self.tokens) and self.tokens[i].kind == "op" and self.tokens[i].text in texts

    def is_name(self, i):
        return 0 <= i < len(self.tokens) and self.tokens[i].kind == "name"

    def add(self, function, kind, first, last, new, shown=None):
        """A mutant that puts new in the place of the tokens first to last."""
        t = self.tokens
        end = t[last].at + len(t[last].text)
        old = " ".join(x.text for x in t[first : min(last, first + 11) + 1])
        before = " ".join(x.text for x in t[max(0, first - 5) : first])
        after = " ".join(x.text for x in t[last + 1 : last + 6])
        shown = shown or (old + (" => " + new if new != ";" else ""))
        context = ("%s [[ %s ]] %s" % (before, shown, after)) if kind != "dropped" else "[[ %s ]]" % old
        context = context.replace("|", "¦").strip()
        line = self.text.count("\n", 0, t[first].at) + 1
        self.found.append(Mutant(self.name, function, kind, context, line, ((t[first].at, end, new),)))

    def negate(self, function, first, last):
        """A mutant whose condition, the tokens first to last, is the opposite."""
        if first > last:
            return
        t = self.tokens
        self.add(function, "negated", first, last, "")
        m = self.found.pop()
        end = t[last].at + len(t[last].text)
        edits = ((t[first].at, t[first].at, "!("), (end, end, ")"))
        self.found.append(m._replace(edits=edits, context=m.context.replace(" => ", "")))

    # ---- statements

    def declares(self, i):
        """Whether a declaration begins at token i."""
        t = self.tokens[i]
        if t.kind != "name" or t.text in WORDS:
            return False
        if t.text in TYPES or t.text.endswith("_t"):
            return True
        i += 1
        stars = i
        while self.is_op(i, "*"):
            i += 1
        return self.is_name(i) and (i == stars or self.is_op(i + 1, "=", ";", ",", "[", ")"))

    def statement_end(self, i):
        """The ';' that ends the simple statement which begins at i; None where it is none."""
        while i < len(self.tokens):
            if self.is_op(i, ";"):
                return i
            if self.is_op(i, "(", "["):
                i = self.partner.get(i, len(self.tokens))
            elif self.is_op(i, "{"):  # a compound literal has something like a type or '=' before it
                if not self.is_op(i - 1, ")", "=", ",", "{"):
                    return None
                i = self.partner.get(i, len(self.tokens))
            elif self.is_op(i, "}"):
                return None
            i += 1
        return None

    def starts(self, first, last):
        """Tokens in a body at which a statement begins."""
        ends_head = {}
        for i in range(first, last + 1):
            if self.is_name(i) and self.tokens[i].text in ("if", "while", "for", "switch") and self.is_op(i + 1, "("):
                ends_head[self.partner[i + 1]] = self.tokens[i].text
        for i in range(first + 1, last):
            after = i - 1
            if self.is_op(after, ";") and not self.in_head(after, first):
                yield i
            elif self.is_op(after, "{") and not self.is_op(after - 1, "=", ",", "{") and not self.literal(after):
                yield i
            elif self.is_op(after, "}") and not self.literal(self.partner[after]):
                yield i
            elif after in ends_head or (self.is_name(after) and self.tokens[after].text in ("else", "do")):
                yield i
            elif self.is_op(after, ":") and self.labelled(after):
                yield i

    def labelled(self, colon):
        """Whether a colon ends a label of a switch."""
        i = colon - 1
        while i >= 0 and not self.is_op(i, ";", "{", "}", "?", ":"):
            if self.is_name(i) and self.tokens[i].text in ("case", "default"):
                return True
            i -= 1
        return False

    def in_head(self, i, first):
        """Whether token i lies between the brackets of a for."""
        depth = 0
        for k in range(i, first, -1):
            if self.is_op(k, ")"):
                depth += 1
            elif self.is_op(k, "("):
                depth -= 1
                if depth < 0:
                    return True
            elif self.is_op(k, "{", "}") and depth == 0:
                return False
        return False

    def literal(self, brace):
        """Whether a '{' opens a list of values, not of statements."""
        if self.is_op(brace - 1, "=", ",", "{", "("):
            return True
        if not self.is_op(brace - 1, ")"):
            return False
        before = self.partner[brace - 1] - 1  # "(type){" follows an operator; "if (...) {" and "f(...) {" a name
        return not self.is_name(before) or self.tokens[before].text in ("return", "case")

    # ---- the kinds

    def drop_statements(self, function, first, last):
        for i in self.starts(first, last):
            t = self.tokens[i]
            if t.kind == "name" and t.text in WORDS - {"return", "break", "continue"}:
                continue
            if self.is_op(i, ";", "{", "}") or self.declares(i):
                continue
            end = self.statement_end(i)
            if end is None or end > last or end == i:
                continue
            if t.text == "return" and (end == last - 1):
                continue  # the end of the function: a value would be missing
            if t.text == "break" and self.is_op(end + 1, "}"):
                head = self.partner.get(self.partner[end + 1] - 1)
                if head and self.is_name(head - 1) and self.tokens[head - 1].text == "switch":
                    continue  # the last of a switch
            if t.text == "(" and self.tokens[i + 1].text == "void":
                continue
            self.add(function, "dropped", i, end, ";")

    def negate_conditions(self, function, first, last):
        for i in range(first, last):
            if self.is_name(i) and self.tokens[i].text in ("if", "while") and self.is_op(i + 1, "("):
                self.negate(function, i + 2, self.partner[i + 1] - 1)
            elif self.is_op(i, "?"):
                self.negate(function, self.begin(i, first), i - 1)
            elif self.is_op(i, "!"):
                self.add(function, "negated", i, i, " ")

    def begin(self, i, first):
        """Where the expression begins that ends before token i."""
        k = i - 1
        while k > first and not self.is_op(k, "(", "[", "{", ",", ";", "?", ":", "=", "+=", "-=", "*=", "/=", "|="):
            if self.is_op(k, ")", "]", "}"):
                k = self.partner[k]
            elif self.is_name(k) and self.tokens[k].text in ("return", "case"):
                break
            k -= 1
        return k + 1

    def end(self, i, *stops):
        """Where the expression ends that begins at token i."""
        while i < len(self.tokens) and not self.is_op(i, ")", "]", "}", ",", ";", *stops):
            i = self.partner[i] if self.is_op(i, "(", "[", "{") else i
            i += 1
        return i

    def picks_one(self, i, first):
        """Whether the comparison at token i picks one of the two that it compares, "a < b ? a : b" or "if (a < b) b = a":
        where both are equal it does not matter which, so that its mutant changes nothing."""
        at = lambda a, b: [t.text for t in self.tokens[a:b]]  # noqa: E731
        a, b = at(self.begin(i, first), i), at(i + 1, self.end(i + 1, "?", "&&", "||"))
        k = i + 1 + len(b)
        if self.is_op(k, "?"):
            colon = self.end(k + 1, ":")
            picked = at(k + 1, colon), at(colon + 1, self.end(colon + 1))
        else:
            equals = self.end(k + 1, "=")
            picked = at(k + 1, equals), at(equals + 1, self.end(equals + 1))
        pure = not any(t in ("(", "=", "++", "--") for t in a + b)
        return pure and picked in ((a, b), (b, a)) and (self.is_op(k, "?") or self.is_name(self.partner.get(k, 0) - 1))

    def binary(self, i):
        p = self.tokens[i - 1]
        return p.kind in ("number", "char", "string") or (p.kind == "name" and p.text not in WORDS) or p.text in (")", "]")

    def turn_operators(self, function, first, last):
        heads = set()
        declared = set()  # the '*' of a declaration
        for i in list(self.starts(first, last)):
            k = i
            if self.tokens[i].text == "for":
                heads.update(range(i, self.partner[i + 1]))
                k = i + 2
            if self.declares(k):
                while self.is_name(k) or self.is_op(k, "*"):
                    declared.add(k)
                    k += 1
        for i in range(first + 1, last):
            t = self.tokens[i]
            if t.kind == "name" and t.text in NAMED:
                self.add(function, "constant", i, i, NAMED[t.text])
            if t.kind != "op":
                continue
            if t.text in COMPARED:
                if t.text not in ("==", "!=") and self.picks_one(i, first):
                    continue
                self.add(function, "compared", i, i, COMPARED[t.text])
            elif t.text in JOINED:
                self.add(function, "joined", i, i, JOINED[t.text])
            elif t.text in ("++", "--"):
                if i not in heads:
                    self.add(function, "turned", i, i, TURNED[t.text])
            elif t.text in ("*", "&") and (not self.binary(i) or i in declared or self.is_op(i + 1, ")", ",", "*", "]")):
                continue
            elif t.text in TURNED and (len(t.text) > 1 or self.binary(i)):
                self.add(function, "turned", i, i, TURNED[t.text])
            elif t.text == "-":
                self.add(function, "turned", i, i, " ", "- => none")

    def move_constants(self, function, first, last):
        sized = set()  # the sizes of arrays, where one more changes nothing
        for i in self.starts(first, last):
            k = i + 2 if self.tokens[i].text == "for" else i
            while self.declares(i) and k < last and not self.is_op(k, ";", "="):
                sized.add(k)
                k += 1
        for i in range(first + 1, last):
            if self.tokens[i].kind != "number" or i in sized:
                continue
            if self.is_op(i - 1, "{") and self.is_op(i + 1, "}"):
                continue  # {0} clears
            if self.is_op(i + 1, ")") and self.tokens[self.partner[i + 1] - 1].text == "__builtin_expect":
                continue  # a hint changes no result
            new = moved(self.tokens[i].text)
            if new:
                self.add(function, "constant", i, i, new)

    def outside(self, i):
        """Named constants and parameters from token i on, outside of functions; returns where the declaration ends."""
        first = i
        words, braces = set(), None
        while i < len(self.tokens) and not self.is_op(i, ";"):
            if self.is_op(i, "{"):
                if self.is_op(i - 1, ")") and not self.literal(i):
                    return i  # a function's body
                braces = braces or i
                i = self.partner[i]
            words.add(self.tokens[i].text)
            i += 1
        scalars = {"static", "const"} <= words and braces is None and "[" not in words
        for k in range(first, min(i, len(self.tokens))):
            t = self.tokens[k]
            sign = self.is_op(k - 1, "-") and self.is_op(k - 2, "=")
            if t.kind == "number" and (scalars or "enum" in words) and (sign or self.is_op(k - 1, "=")):
                new = moved(t.text)
                if new:
                    self.add("", "constant", k, k, new)
            elif t.kind == "string" and NUMERIC.fullmatch(t.text) and self.parameter(k):
                new = moved(t.text[1:-1].lstrip("-"))
                if new:
                    self.add("", "constant", k, k, '"%s%s"' % ("-" if t.text[1] == "-" else "", new))
        return i

    def parameter(self, k):
        """Whether token k is the default in a row of a policy's parameters."""
        depth = 0
        while k > 0:
            k -= 1
            depth += self.is_op(k, ")") - self.is_op(k, "(")
            if depth < 0:
                return self.tokens[k - 1].text == "FL_PARAM"
        return False

    def mutants(self):
        i = 0
        while i < len(self.tokens):
            i = self.outside(i)
            if self.is_op(i, "{"):
                last = self.partner.get(i, len(self.tokens) - 1)
                function = self.tokens[self.partner[i - 1] - 1].text
                self.drop_statements(function, i, last)
                self.negate_conditions(function, i, last)
                self.turn_operators(function, i, last)
                self.move_constants(function, i, last)
                i = last
            i += 1
        return self.found


def mutants_of(name, text):
    return File(name, text).mutants()


def apply(mutant, text):
    for first, last, new in reversed(mutant.edits):
        text = text[:first] + new + text[last:]
    return text


def key_of(m):
    """What a mutant is known by, wherever its line moves."""
    return (m.file, m.function, m.kind, m.context)


def rank(seed, m):
    """The place of a mutant in a sample. It depends on the mutant alone: an edit elsewhere draws no other sample."""
    return hashlib.sha256(("%s\0" % seed + "\0".join(key_of(m))).encode()).hexdigest()
