package shells

import (
	"strings"
	"unicode"
)

// hole marks, in a word, what only the shell knows: a variable, a substitution, a glob.
const hole = '\x00'

// line is a simple command of a shell text.
type line struct {
	words []string
	from  string // the file that its input is redirected from; "" = none
}

// lexer splits a shell text into commands. In doubt it finds too many commands, never too few.
type lexer struct {
	text  []rune
	at    int
	word  strings.Builder
	any   bool // there is a word, also an empty one in quotes
	now   line
	into  string // the redirection that waits for its word
	lines []line
	docs  []document
	depth int
	vars  Vars

	parens  int // subshells that are open
	pattern int // of a case: where the words before its ) begin among the lines; 0 = there is none
}

// document is a here-document whose text follows after the line.
type document struct {
	end   string
	plain bool // nothing in it is expanded
}

// maxDepth bounds nested substitutions. A deeper text counts as unknown.
const maxDepth = 20

// lex returns the simple commands of a text, with those of its substitutions. ok is false if they are nested too deep.
func lex(text string, vars Vars, depth int) (lines []line, ok bool) {
	l := &lexer{text: []rune(strings.ReplaceAll(text, string(hole), "?")), depth: depth, vars: vars}
	if depth > maxDepth {
		return nil, false
	}
	ok = true
	for l.at < len(l.text) {
		ok = l.step() && ok
	}
	l.endLine()
	return l.lines, ok
}

func (l *lexer) peek(n int) rune {
	if l.at+n < len(l.text) {
		return l.text[l.at+n]
	}
	return 0
}

func (l *lexer) add(r rune) { l.word.WriteRune(r); l.any = true }

// step reads one thing outside of quotes.
func (l *lexer) step() bool {
	r := l.peek(0)
	switch r {
	case ' ', '\t', '\r':
		l.endWord()
	case '\n':
		l.endLine()
		l.at++
		return l.skipDocuments()
	case ';', '&', '|', '(', ')':
		if r == '&' && l.peek(1) == '>' {
			break // &>file
		}
		l.endLine()
		l.group(r)
	case '#':
		if !l.any {
			for l.at < len(l.text) && l.text[l.at] != '\n' {
				l.at++
			}
			return true
		}
		l.add(r)
	case '<', '>':
		return l.redirect()
	case '\\':
		if l.at++; l.peek(0) != '\n' && l.at < len(l.text) {
			l.add(l.peek(0))
		}
	case '\'':
		l.any = true
		for l.at++; l.at < len(l.text) && l.text[l.at] != '\''; l.at++ {
			l.add(l.text[l.at])
		}
	case '"':
		l.any = true
		l.at++
		return l.quoted('"')
	case '$', '`':
		return l.expansion(false)
	case '*', '?', '[':
		l.add(globbed(r, l.peek(1)))
	case '{':
		if n := alternatives(l.text[l.at:]); n > 0 {
			l.add(hole)
			l.at += n
			return true
		}
		l.add(r)
	default:
		l.add(r)
	}
	l.at++
	return true
}

// globbed returns how a rune of a glob appears in a word; a [ alone is the command.
func globbed(r, next rune) rune {
	if r == '[' && (next == ' ' || next == '[' || next == 0) {
		return r
	}
	return hole
}

// alternatives returns the length of the {a,b} or {1..3} that a text begins with; 0 = it begins with none.
func alternatives(text []rune) int {
	depth, several := 0, false
	for i, r := range text {
		switch {
		case r == '{':
			depth++
		case r == '}':
			depth--
		case unicode.IsSpace(r):
			return 0
		}
		several = several || r == ',' || r == '.' && text[i-1] == '.'
		if depth == 0 {
			if several {
				return i + 1
			}
			return 0
		}
	}
	return 0
}

// quoted reads up to the closing quote, or to the end of a here-document.
func (l *lexer) quoted(end rune) bool {
	ok := true
	for l.at < len(l.text) {
		switch r := l.text[l.at]; {
		case r == end && end != 0:
			l.at++
			return ok
		case r == '\\' && strings.ContainsRune("$`\"\\\n", l.peek(1)):
			if l.at++; l.peek(0) != '\n' {
				l.add(l.peek(0))
			}
			l.at++
		case r == '$' || r == '`':
			ok = l.expansion(true) && ok
		default:
			l.add(r)
			l.at++
		}
	}
	return ok
}

// expansion reads what begins with $ or a backquote.
func (l *lexer) expansion(quoted bool) bool {
	if l.peek(0) == '`' {
		return l.substitution(l.until('`'))
	}
	switch next := l.peek(1); {
	case next == '\'' || next == '"':
		l.at++ // $'…' and $"…" are read as quotes
		return true
	case next == '(' && l.peek(2) == '(':
		l.at++
		l.balanced('(', ')')
		l.add(hole)
		return true
	case next == '(':
		l.at++
		return l.substitution(l.balanced('(', ')'))
	case next == '{':
		l.at++
		inner := l.balanced('{', '}')
		if value, ok := l.vars.known(inner); ok {
			l.value(value, quoted)
			return true
		}
		l.add(hole)
		return l.nested(inner)
	}
	l.at++
	name := ""
	for r := l.peek(0); r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
		name != "" && r >= '0' && r <= '9'; r = l.peek(0) {
		name += string(r)
		l.at++
	}
	if value, ok := l.vars.known(name); ok {
		l.value(value, quoted)
		return true
	}
	if name == "" && strings.ContainsRune("@*#?$!-0123456789", l.peek(0)) && l.at < len(l.text) {
		l.at++
		name = "?"
	}
	if name == "" {
		l.add('$')
	} else {
		l.add(hole)
	}
	return true
}

// value adds the value of a variable. Outside of quotes, its blanks end words.
func (l *lexer) value(value string, quoted bool) {
	l.any = l.any || quoted
	for _, r := range value {
		if !quoted && (r == ' ' || r == '\t' || r == '\n') {
			l.endWord()
		} else {
			l.add(r)
		}
	}
}

// nested reads the substitutions in a ${…}.
func (l *lexer) nested(inner string) bool {
	if !strings.ContainsAny(inner, "`$") {
		return true
	}
	in := &lexer{text: []rune(inner), depth: l.depth + 1, vars: l.vars}
	ok := l.depth < maxDepth && in.quoted(0)
	l.lines = append(l.lines, in.lines...)
	return ok
}

// substitution takes the commands in a $(…) or `…`.
func (l *lexer) substitution(inner string) bool {
	l.add(hole)
	lines, ok := lex(inner, l.vars, l.depth+1)
	l.lines = append(l.lines, lines...)
	return ok
}

// until reads up to the next end, and skips it.
func (l *lexer) until(end rune) string {
	var b strings.Builder
	for l.at++; l.at < len(l.text) && l.text[l.at] != end; l.at++ {
		if l.text[l.at] == '\\' && l.at+1 < len(l.text) {
			l.at++
		}
		b.WriteRune(l.text[l.at])
	}
	l.at++
	return b.String()
}

// balanced reads from an opening rune to its closing one.
func (l *lexer) balanced(open, end rune) string {
	from, depth := l.at+1, 0
	for quote := rune(0); l.at < len(l.text); l.at++ {
		switch r := l.text[l.at]; {
		case r == '\\':
			l.at++
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == open:
			depth++
		case r == end:
			if depth--; depth == 0 {
				l.at++
				return string(l.text[from : l.at-1])
			}
		}
	}
	return string(l.text[min(from, len(l.text)):])
}

// redirect reads the operator of a redirection, not the word after it.
func (l *lexer) redirect() bool {
	if strings.Trim(l.word.String(), "0123456789") == "" {
		l.word.Reset() // 2>file
		l.any = false
	}
	l.endWord()
	from := l.at
	for l.at < len(l.text) && strings.ContainsRune("<>&|-", l.text[l.at]) && l.at-from < 3 {
		if l.text[l.at] == '-' && string(l.text[from:l.at]) != "<<" {
			break
		}
		l.at++
	}
	l.into = string(l.text[from:l.at])
	if (l.into == "<" || l.into == ">") && l.peek(0) == '(' { // <(…)
		l.into = ""
		return l.substitution(l.balanced('(', ')'))
	}
	return true
}

func (l *lexer) endWord() {
	if !l.any {
		return
	}
	w := l.word.String()
	l.word.Reset()
	l.any = false
	switch into := l.into; {
	case into == "":
		l.now.words = append(l.now.words, w)
	case strings.HasPrefix(into, "<<") && into != "<<<":
		back := l.at - 1
		plain := back >= 0 && strings.ContainsRune("'\"", l.text[min(back, len(l.text)-1)])
		l.docs = append(l.docs, document{w, plain})
		l.now.from = string(hole)
	case strings.HasPrefix(into, "<"):
		l.now.from = w
	}
	l.into = ""
}

func (l *lexer) endLine() {
	l.endWord()
	if len(l.now.words) > 0 {
		l.lines = append(l.lines, l.now)
		switch l.now.words[0] {
		case "case":
			l.pattern = len(l.lines)
		case "esac":
			l.pattern = 0
		}
	}
	l.now = line{}
}

// group drops the patterns of a case, which end with a ) that closes nothing.
func (l *lexer) group(r rune) {
	switch {
	case r == '(':
		l.parens++
	case r == ')' && l.parens > 0:
		l.parens--
	case r == ')' && l.pattern > 0:
		l.lines, l.pattern = l.lines[:min(l.pattern, len(l.lines))], 0
	case r == ';' && (l.peek(1) == ';' || l.peek(1) == '&'):
		l.pattern = max(1, len(l.lines))
	}
}

// skipDocuments skips the texts of here-documents, except the commands in them.
func (l *lexer) skipDocuments() bool {
	ok := true
	for _, d := range l.docs {
		from, to := l.at, len(l.text)
		for l.at < len(l.text) {
			start := l.at
			for l.at < len(l.text) && l.text[l.at] != '\n' {
				l.at++
			}
			here := strings.TrimLeft(string(l.text[start:l.at]), "\t")
			l.at++
			if here == d.end {
				to = start
				break
			}
		}
		l.at = min(l.at, len(l.text))
		if !d.plain {
			ok = l.nested(string(l.text[from:to])) && ok
		}
	}
	l.docs = nil
	return ok
}
