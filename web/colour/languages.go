package colour

import (
	"context"
	"embed"
	"strings"

	"github.com/alecthomas/chroma/v2"
)

//go:embed lexers/*.xml
var lexers embed.FS

// languages are those that chroma reads, and Go.
type languages struct{ known *chroma.LexerRegistry }

// load reads the names of the languages. Their rules are read when they are used.
func load() *languages {
	l := &languages{known: chroma.NewLexerRegistry()}
	entries, err := lexers.ReadDir("lexers")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, e := range entries {
		l.known.Register(chroma.MustNewXMLLexer(lexers, "lexers/"+e.Name()))
	}
	return l
}

// know reports whether there is a language for a file of this name.
func (l *languages) know(name string) bool {
	return strings.HasSuffix(name, ".go") || l.known.Match(name) != nil
}

// lines returns the colours of a text, as far as it got before ctx was over.
func (l *languages) lines(ctx context.Context, name, text string) Lines {
	if strings.HasSuffix(name, ".go") {
		return goLines(text)
	}
	return chromaLines(ctx, l.known.Match(name), text)
}

func chromaLines(ctx context.Context, lexer chroma.Lexer, text string) Lines {
	var s splitter
	func() {
		defer func() { _ = recover() }() // chroma panics where a language names one that is not there
		next, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, text)
		if err != nil {
			return
		}
		left := text
		for t := next(); t != chroma.EOF && ctx.Err() == nil; t = next() {
			rest, ok := strings.CutPrefix(left, t.Value)
			if !ok { // a line end that chroma added
				return
			}
			s.add(t.Value, classOf(t.Type))
			left = rest
		}
	}()
	s.end()
	return s.out
}

// classOf returns the class of a kind of token; "" = no colour.
func classOf(t chroma.TokenType) string {
	switch {
	case t.InCategory(chroma.Keyword), t == chroma.OperatorWord, t.InSubCategory(chroma.CommentPreproc):
		return "k"
	case t.InCategory(chroma.Comment):
		return "c"
	case t.InSubCategory(chroma.LiteralString):
		return "s"
	case t.InSubCategory(chroma.LiteralNumber):
		return "m"
	}
	switch t {
	case chroma.NameFunction, chroma.NameFunctionMagic:
		return "f"
	case chroma.NameClass, chroma.NameTag, chroma.NameBuiltin, chroma.NameDecorator, chroma.NameAttribute,
		chroma.NameException, chroma.NameNamespace:
		return "n"
	}
	return ""
}
