package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// script is a shell text of an original, made fit to run: values from outside come by the
// environment, and each is in double quotes.
type script struct {
	text  string
	reads []string // names of the outside that it reads: those given, and what a reference became
	why   string   // it would run outside text as code, or a value would stand where no quotes help; "" = fit
	line  int      // of that, from 1
}

// refs turns a reference of the original at the beginning of s into the name of a variable; n is how
// many bytes it has, 0 = there is none.
type refs func(s string) (name string, n int)

// quoting is what the scanner is in.
type quoting int

const (
	plain quoting = iota
	double
	single
	heredocText // a here-document in which values are put
)

type scanner struct {
	in      string
	at      int
	out     strings.Builder
	stack   []quoting
	parens  []int // open ( of each plain level
	outside []string
	refs    refs
	got     script
	waiting []heredoc
	ticks   bool // within backquotes
	open    int  // the line of a here-document in which a substitution begins that it does not end; 0 = none
}

type heredoc struct {
	end  string
	raw  bool
	tabs bool
}

// fit makes a shell text fit to run. outside are the variables whose values come from outside.
func fit(text string, outside []string, ref refs) script {
	s := &scanner{in: text, outside: outside, refs: ref, stack: []quoting{plain}, parens: []int{0}}
	for s.at < len(s.in) {
		s.step()
	}
	s.got.text = s.out.String()
	if s.open > 0 && len(s.got.reads) > 0 {
		s.bad(s.open, "a substitution in a here-document goes on in its next line")
	}
	if s.got.why == "" && len(s.got.reads) > 0 {
		if line := runsCode(s.got.text); line > 0 {
			s.bad(line, "it runs a text with values in it as code")
		}
		if m := regexp.MustCompile(`\$\([^()]*\bcase\b`).FindStringIndex(text); m != nil {
			s.bad(1+strings.Count(text[:m[0]], "\n"), "a case within $( ) is not looked through")
		}
	}
	return s.got
}

func (s *scanner) mode() quoting { return s.stack[len(s.stack)-1] }

func (s *scanner) push(q quoting) { s.stack, s.parens = append(s.stack, q), append(s.parens, 0) }

func (s *scanner) pop() {
	if len(s.stack) > 1 {
		s.stack, s.parens = s.stack[:len(s.stack)-1], s.parens[:len(s.parens)-1]
	}
}

func (s *scanner) bad(line int, why string) {
	if s.got.why == "" {
		s.got.why, s.got.line = why, line
	}
}

func (s *scanner) line() int { return 1 + strings.Count(s.in[:min(s.at, len(s.in))], "\n") }

// copy writes the next n bytes as they are.
func (s *scanner) copy(n int) {
	end := min(s.at+n, len(s.in))
	s.out.WriteString(s.in[s.at:end])
	s.at = end
}

func (s *scanner) step() {
	c := s.in[s.at]
	switch s.mode() {
	case single:
		if c == '\'' {
			s.pop()
		} else if c == '$' && s.hidden() {
			s.bad(s.line(), "a value stands in single quotes")
		}
		s.copy(1)
		return
	case heredocText: // begun by body(), which ends it
		s.copy(1)
		return
	case double:
		if c == '"' {
			s.pop()
			s.copy(1)
			return
		}
	}
	switch {
	case c == '\\':
		s.copy(2)
	case c == '$':
		s.dollar()
	case c == '`':
		s.ticks = !s.ticks
		s.copy(1)
	case s.mode() == double:
		s.copy(1)
	default:
		s.unquoted(c)
	}
}

// unquoted reads one thing outside of quotes.
func (s *scanner) unquoted(c byte) {
	top := len(s.parens) - 1
	switch {
	case c == '\'':
		s.push(single)
		s.copy(1)
	case c == '"':
		s.push(double)
		s.copy(1)
	case c == '#' && (s.at == 0 || strings.ContainsRune(" \t\n;(", rune(s.in[s.at-1]))):
		n := strings.IndexByte(s.in[s.at:], '\n')
		if n < 0 {
			n = len(s.in) - s.at
		}
		s.copy(n)
	case c == '(':
		s.parens[top]++
		s.copy(1)
	case c == ')':
		if s.parens[top]--; s.parens[top] < 0 {
			s.parens[top] = 0
			s.pop()
		}
		s.copy(1)
	case strings.HasPrefix(s.in[s.at:], "<<<"):
		s.copy(3)
	case strings.HasPrefix(s.in[s.at:], "<<") && s.mode() == plain:
		s.heredoc()
	case c == '\n':
		s.copy(1)
		s.here()
	default:
		s.copy(1)
	}
}

// heredoc notes the here-document that the line announces.
func (s *scanner) heredoc() {
	m := regexp.MustCompile(`^<<(-?)[ \t]*(\\?)(['"]?)([A-Za-z_][A-Za-z0-9_-]*)['"]?`).FindStringSubmatch(s.in[s.at:])
	if m == nil {
		s.copy(2)
		return
	}
	s.waiting = append(s.waiting, heredoc{m[4], m[2] != "" || m[3] != "", m[1] != ""})
	s.copy(len(m[0]))
	if s.at < len(s.in) && !strings.ContainsRune(" \t\n\r;|&<>)", rune(s.in[s.at])) {
		s.bad(s.line(), "the end of a here-document is not read")
	}
}

// here reads the here-documents that begin on this line.
func (s *scanner) here() {
	for len(s.waiting) > 0 {
		doc := s.waiting[0]
		s.waiting = s.waiting[1:]
		for s.at < len(s.in) {
			line, _, more := strings.Cut(s.in[s.at:], "\n")
			end := s.at + len(line)
			name := line
			if doc.tabs {
				name = strings.TrimLeft(line, "\t")
			}
			if name == doc.end {
				s.copy(len(line) + 1)
				break
			}
			s.body(end, doc.raw)
			if !more {
				break
			}
			s.copy(1)
		}
	}
}

// body reads a line of a here-document up to end.
func (s *scanner) body(end int, raw bool) {
	for s.at < end {
		switch c := s.in[s.at]; {
		case raw:
			if c == '$' && s.hidden() {
				s.bad(s.line(), "a value stands in a here-document that takes none")
			}
			s.copy(1)
		case c == '\\':
			s.copy(min(2, end-s.at))
		case c == '$':
			before := len(s.stack)
			s.push(heredocText)
			s.dollar()
			for s.at < end && s.mode() != heredocText { // a substitution within the line
				s.step()
			}
			if s.mode() != heredocText && s.open == 0 {
				s.open = s.line()
			}
			for len(s.stack) > before {
				s.pop()
			}
		default:
			s.copy(1)
		}
	}
}

// hidden reports whether a reference of the original, which it replaces everywhere, stands here.
func (s *scanner) hidden() bool {
	_, n := s.refs(s.in[s.at:])
	return n > 0
}

// dollar reads an expansion.
func (s *scanner) dollar() {
	rest := s.in[s.at:]
	if name, n := s.refs(rest); n > 0 {
		s.value(name, n, "${"+name+"}")
		return
	}
	switch {
	case strings.HasPrefix(rest, "$(("):
		end := strings.Index(rest, "))")
		if end < 0 {
			end = len(rest) - 2
		}
		for _, name := range s.outside {
			if regexp.MustCompile(`\b` + name + `\b`).MatchString(rest[:end]) {
				s.bad(s.line(), "arithmetic evaluates $"+name)
			}
		}
		s.copy(end + 2)
	case strings.HasPrefix(rest, "$("):
		s.copy(2)
		s.push(plain)
	default:
		m := regexp.MustCompile(`^\$(?:\{[#!]?)?([A-Za-z_][A-Za-z0-9_]*)`).FindStringSubmatch(rest)
		n := 1
		if strings.HasPrefix(rest, "${") {
			n = braced(rest)
		} else if m != nil {
			n = len(m[0])
		}
		if m != nil && slices.Contains(s.outside, m[1]) && !strings.HasPrefix(rest, "${#") {
			s.value(m[1], n, rest[:n])
			return
		}
		s.copy(n)
	}
}

// braced returns the length of ${…}, with those within it.
func braced(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '\n':
			return i
		}
	}
	return len(s)
}

// value writes an expansion of an outside value, in quotes where there are none.
func (s *scanner) value(name string, n int, words string) {
	if s.ticks {
		s.bad(s.line(), "a value stands within backquotes")
	}
	if !slices.Contains(s.got.reads, name) {
		s.got.reads = append(s.got.reads, name)
	}
	if s.mode() == plain {
		words = `"` + words + `"`
	}
	s.out.WriteString(words)
	s.at += n
}

// runsCode returns the first line on which a shell text runs a text with values in it as code: eval,
// or an interpreter that is given code in double quotes or none. 0 = none.
func runsCode(text string) int {
	code := regexp.MustCompile(`\beval\b|\b(?:ba|da|z|k)?sh[ \t]+(?:-[a-z]+[ \t]+)*-[a-z]*c\b[ \t]*|` +
		`\b(?:python3?|node|bun|deno|perl|ruby|php)[ \t]+(?:-[A-Za-z]+[ \t]+)*-[a-z]*[cer]\b[ \t]*|\b(?:g|m)?awk[ \t]+`)
	for _, m := range code.FindAllStringIndex(text, -1) {
		rest := text[m[1]:]
		arg, _, _ := strings.Cut(rest, "\n")
		switch {
		case strings.HasPrefix(rest, "'"):
			continue // nothing is put into it
		case strings.HasPrefix(rest, `"`):
			arg = rest[1:]
			if end := strings.IndexByte(arg, '"'); end >= 0 {
				arg = arg[:end]
			}
		}
		if strings.ContainsAny(arg, "$`") {
			return 1 + strings.Count(text[:m[0]], "\n")
		}
	}
	return 0
}

// held says why a script is not run, for a person.
func (s script) held() string { return fmt.Sprintf("its line %d: %s", s.line, s.why) }
