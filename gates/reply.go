package gates

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sluice/internal/strictjson"
	"sluice/internal/text"
)

// maxPieces is how many JSON values of one reply are looked at.
const maxPieces = 10_000

// piece is a JSON value in a reply, or what was to be one.
type piece struct {
	at, end int
	err     error // why it cannot be read
	quoted  bool  // it stands behind a >, or in a block marked data: the writer says that it is another's
}

func (p piece) unread() error {
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("it cannot be read: %w", p.err)
}

// reply is an agent's last words, with the JSON in them.
type reply struct {
	text   string
	pieces []piece // in their order, none within another
	read   int     // how many bytes were read to find them: a small multiple of the text's length
}

// look finds the JSON in a text: every object that is whole, whatever stands around it, and where lists is set every list.
// What goes wrong behind a first key is a piece as well, up to the brace that closes it, so that what lies in it counts as
// nobody's word. A text that ends within JSON, or has too much of it, is an error.
//
// The work is in proportion to the text: what was read as one piece is not read again, what fails before a first key
// fails at the first text in quotes, and lists fail after [strictjson.MaxDepth] brackets.
func look(output []byte, lists bool) (reply, error) {
	r := reply{text: string(output)}
	open := "{"
	if lists {
		open = "{["
	}
	for i := 0; i < len(output); {
		next := bytes.IndexAny(output[i:], open)
		if next < 0 {
			break
		}
		i += next
		n, member, state, err := strictjson.Value(output[i:])
		r.read += n
		p := piece{at: i, end: i + n}
		switch {
		case state == strictjson.Whole && n > MaxAnswer:
			p.err = fmt.Errorf("more than %d bytes", MaxAnswer)
		case state == strictjson.Whole:
		case state == strictjson.Partial:
			return r, fmt.Errorf("%s: the reply ends in the middle of JSON: give it whole", r.line(i))
		case member && output[i] == '{':
			p.err, p.end = err, closing(output, i)
			r.read += p.end - i
		default:
			i++
			continue
		}
		if i = p.end; len(r.pieces) == maxPieces {
			return r, fmt.Errorf("the reply has more than %d JSON values: give a short one that ends with the JSON", maxPieces)
		}
		r.pieces = append(r.pieces, p)
	}
	r.markQuoted()
	return r, nil
}

// closing is where the object at i ends as its braces have it, or the end of the text. A text in quotes does not go on
// over the end of its line.
func closing(text []byte, i int) int {
	depth, quoted := 0, false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			quoted = false
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// markQuoted marks the pieces that begin in a quote.
func (r *reply) markQuoted() {
	at, i, fence := 0, 0, text.Fence{}
	for l := range strings.Lines(r.text) {
		quote := strings.EqualFold(fence.Info, "data") || strings.HasPrefix(strings.TrimLeft(l, " \t"), ">")
		at += len(l)
		for ; i < len(r.pieces) && r.pieces[i].at < at; i++ {
			r.pieces[i].quoted = quote
		}
		fence = fence.Next(strings.TrimRight(l, "\r\n"))
	}
}

// line names the place of a byte of the reply to people.
func (r *reply) line(at int) string {
	return fmt.Sprintf("line %d of the reply", strings.Count(r.text[:at], "\n")+1)
}

// where names the place of a piece.
func (r *reply) where(p piece) string {
	if strings.TrimSpace(r.text) == r.text[p.at:p.end] {
		return inWhole
	}
	return r.line(p.at)
}

func (r *reply) data(p piece) []byte { return []byte(r.text[p.at:p.end]) }

// answer gives the last whole value that accept takes. An object behind it that cannot be read stands in its way: that
// was the agent's last word.
func (r *reply) answer(accept func([]byte) error) (said, error) {
	var last error
	for _, p := range slices.Backward(r.pieces) {
		err := p.unread()
		if err == nil && p.quoted {
			err = errQuoted
		} else if err == nil {
			if err = accept(r.data(p)); err == nil {
				return said{r.where(p), r.data(p)}, nil
			}
		}
		if last == nil {
			last = fmt.Errorf("%s: %w", r.where(p), err)
		}
		if p.err != nil {
			return said{}, last
		}
	}
	if last == nil {
		last = errNoJSON
	}
	return said{}, last
}

var (
	errNoJSON = errors.New("no JSON in the reply: end it with one block that begins with ```json")
	errQuoted = errors.New("it stands in a quote, behind a > or in a block marked data: give your own outside of any")
)

const (
	// keyOfVerdict is a verdict in what is no JSON: in single quotes, escaped, or without any.
	keyOfVerdict = `(?i)["'“”‘’]verdict\\?["'“”‘’]\s*:|\{\s*verdict\s*:`
	// wordOfVerdict is a verdict in words.
	wordOfVerdict = "(?i)\\bverdict\\b(?:\\s+is\\b)?[\\s*_:=`\"]{1,8}([a-z0-9_-]+)"
)

// between calls f with each stretch of the text that is in no piece, and where it begins.
func (r *reply) between(f func(at int, text string)) {
	from := 0
	for _, p := range append(slices.Clip(r.pieces), piece{at: len(r.text), end: len(r.text)}) {
		f(from, r.text[from:p.at])
		from = p.end
	}
}

// verdicts are the pieces that say something of a judgement, and what was to be one of them.
func (r *reply) verdicts(in VerdictInput) []piece {
	var out []piece
	key := regexp.MustCompile(keyOfVerdict)
	for _, p := range r.pieces {
		if p.err == nil && speaks(r.data(p), in) || p.err != nil && (p.end == len(r.text) || key.MatchString(r.text[p.at:p.end])) {
			out = append(out, p)
		}
	}
	r.between(func(at int, text string) {
		if m := key.FindStringIndex(text); m != nil {
			out = append(out, piece{at: at + m[0], end: at + m[1], err: errors.New("it gives a verdict that is no strict JSON: write each key and text in double quotes")})
		}
	})
	slices.SortFunc(out, func(a, b piece) int { return a.at - b.at })
	return out
}

// speaks says that an object has a member that belongs to a judgement.
func speaks(data []byte, in VerdictInput) bool {
	f, _, err := strictjson.Read(data, MaxAnswer)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(f.Keys(), func(key string) bool {
		key = strictjson.Fold(key)
		return slices.ContainsFunc([]string{"verdict", "score", "scores", "feedback", "findings"}, func(m string) bool { return key == strictjson.Fold(m) })
	}) || in.Schema != nil && in.Computed
}

// inWords gives the verdict that the text gives in words and that is another one than word, and its place.
func (r *reply) inWords(word string, allowed []string) (other, where string) {
	words := regexp.MustCompile(wordOfVerdict)
	r.between(func(at int, text string) {
		for _, m := range words.FindAllStringSubmatchIndex(text, -1) {
			w := text[m[2]:m[3]]
			if other == "" && !strings.EqualFold(w, word) && slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, w) }) {
				other, where = w, r.line(at+m[0])
			}
		}
	})
	return other, where
}

// repeats says that what was found stands in the prompt too, and in the reply within a line of other words only: more likely
// a quote of the work than a verdict.
func (r *reply) repeats(found said, prompt []byte) bool {
	if found.where == inWhole || !bytes.Contains(prompt, found.data) || !strings.Contains(r.text, string(found.data)) {
		return false
	}
	for _, p := range r.pieces {
		if r.text[p.at:p.end] != string(found.data) {
			continue
		}
		before, after := r.text[:p.at], r.text[p.end:]
		before = before[strings.LastIndexByte(before, '\n')+1:]
		after, _, _ = strings.Cut(after, "\n")
		if strings.TrimSpace(before+after) == "" {
			return false
		}
	}
	return true
}
