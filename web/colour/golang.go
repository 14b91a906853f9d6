package colour

import (
	"go/scanner"
	"go/token"
	"strings"
)

// goLines returns the colours of a Go file. Its faults do not matter.
func goLines(text string) Lines {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var scan scanner.Scanner
	scan.Init(file, []byte(text), func(token.Position, string) {}, scanner.ScanComments)
	var s splitter
	from, name := 0, 0 // where the text begins that was not added yet; where a name ended
	add := func(to int, class string) {
		if to = min(to, len(text)); to > from {
			s.add(text[from:to], class)
			from = to
		}
	}
	for {
		pos, tok, lit := scan.Scan()
		if tok == token.EOF {
			break
		}
		at, class := file.Offset(pos), classOfGo(tok)
		switch {
		case tok == token.IDENT:
			add(at, "")
			name = at + len(lit)
		case tok == token.LPAREN && at == name:
			add(at, "f")
		case class != "":
			add(at, "")
			add(at+length(text[at:], lit), class)
		}
	}
	add(len(text), "")
	s.end()
	return s.out
}

// length returns how long a token is that s begins with; its literal lacks carriage returns.
func length(s, lit string) int {
	end, mark := -1, 0
	switch {
	case strings.HasPrefix(s, "`"):
		end, mark = strings.IndexByte(s[1:], '`')+1, 1
	case strings.HasPrefix(s, "//"):
		end = strings.IndexByte(s, '\n')
	case strings.HasPrefix(s, "/*"):
		end, mark = strings.Index(s, "*/"), 2
	default:
		return len(lit)
	}
	if end <= 0 { // it has no end
		return len(s)
	}
	return end + mark
}

func classOfGo(t token.Token) string {
	switch {
	case t.IsKeyword():
		return "k"
	case t == token.STRING, t == token.CHAR:
		return "s"
	case t == token.INT, t == token.FLOAT, t == token.IMAG:
		return "m"
	case t == token.COMMENT:
		return "c"
	}
	return ""
}
