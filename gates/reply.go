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

// maxPieces is the most JSON values examined in a reply.
const maxPieces = 10_000

// piece is a JSON value in a reply, or a failed attempt at one.
type piece struct {
	at, end int
	err     error // why it cannot be read
	quoted  bool  // after a >, or in a block marked data: someone else's words
	asked   bool  // in a block marked json, as was asked for
}

func (p piece) unread() error {
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("it cannot be read: %w", p.err)
}

// reply is an agent's last message, with its JSON.
type reply struct {
	text   string
	pieces []piece // in order, not nested
	read   int     // bytes read to find them: a small multiple of the text's length
}

// look finds the JSON in a text: every whole object, whatever surrounds it, and with lists every
// list. An object that fails after its first key is a piece too, up to its closing brace, so that
// nothing inside counts as an answer. A text that ends within JSON, or has too much of it, is an
// error.
//
// The time is linear in the text: a piece is read once, failures before a first key stop at the
// first quoted text, and lists stop after [strictjson.MaxDepth] brackets.
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

// closing returns where the object at i ends by its braces, or the end of the text. Quoted text
// ends with its line.
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

// markQuoted marks the pieces that begin in a quote, and those in a block marked json.
func (r *reply) markQuoted() {
	at, i, fence := 0, 0, text.Fence{}
	for l := range strings.Lines(r.text) {
		quote := strings.EqualFold(fence.Info, "data") || strings.HasPrefix(strings.TrimLeft(l, " \t"), ">")
		at += len(l)
		for ; i < len(r.pieces) && r.pieces[i].at < at; i++ {
			r.pieces[i].quoted, r.pieces[i].asked = quote, strings.EqualFold(fence.Info, "json")
		}
		fence = fence.Next(strings.TrimRight(l, "\r\n"))
	}
}

// line returns the line of a byte of the reply, for people.
func (r *reply) line(at int) string {
	return fmt.Sprintf("line %d of the reply", strings.Count(r.text[:at], "\n")+1)
}

// where returns the place of a piece, for people.
func (r *reply) where(p piece) string {
	if strings.TrimSpace(r.text) == r.text[p.at:p.end] {
		return inWhole
	}
	return r.line(p.at)
}

func (r *reply) data(p piece) []byte { return []byte(r.text[p.at:p.end]) }

// answer returns the last whole value that accept takes. An unreadable object after it makes this
// an error, because that was the agent's last word.
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
	errQuoted = errors.New("it is in a quote, after a > or in a block marked data: give your own outside of any")
)

const (
	// keyOfVerdict is a verdict in invalid JSON: in single quotes, escaped, or unquoted.
	keyOfVerdict = `(?i)["'“”‘’]verdict\\?["'“”‘’]\s*:|\{\s*verdict\s*:`
	// wordOfVerdict is a verdict in words.
	wordOfVerdict = "(?i)\\bverdict\\b(?:\\s+is\\b)?[\\s*_:=`\"]{1,8}([a-z0-9_-]+)"
)

// between calls f with each stretch of text outside the pieces, and its offset.
func (r *reply) between(f func(at int, text string)) {
	from := 0
	for _, p := range append(slices.Clip(r.pieces), piece{at: len(r.text), end: len(r.text)}) {
		f(from, r.text[from:p.at])
		from = p.end
	}
}

// verdicts returns the pieces that are part of a judgement, and failed attempts at one.
func (r *reply) verdicts(in VerdictInput) []piece {
	var out []piece
	key := regexp.MustCompile(keyOfVerdict)
	for _, p := range r.pieces {
		if p.err == nil && speaks(r.data(p), in) ||
			p.err != nil && (p.end == len(r.text) || key.MatchString(r.text[p.at:p.end])) {
			out = append(out, p)
		}
	}
	r.between(func(at int, text string) {
		if m := key.FindStringIndex(text); m != nil {
			out = append(out, piece{at: at + m[0], end: at + m[1],
				err: errors.New("it gives a verdict that is not strict JSON: write each key and text in double quotes")})
		}
	})
	slices.SortFunc(out, func(a, b piece) int { return a.at - b.at })
	return out
}

// speaks reports whether an object has a member of a judgement.
func speaks(data []byte, in VerdictInput) bool {
	f, _, err := strictjson.Read(data, MaxAnswer)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(f.Keys(), func(key string) bool {
		key = strictjson.Fold(key)
		return slices.ContainsFunc([]string{"verdict", "score", "scores", "feedback", "findings"},
			func(m string) bool { return key == strictjson.Fold(m) })
	}) || in.Schema != nil && in.Computed
}

// inWords returns a verdict that the text states in words and that differs from word, and its
// place.
func (r *reply) inWords(word string, allowed []string) (other, where string) {
	words := regexp.MustCompile(wordOfVerdict)
	r.between(func(at int, text string) {
		for _, m := range words.FindAllStringSubmatchIndex(text, -1) {
			w := text[m[2]:m[3]]
			if other == "" && !strings.EqualFold(w, word) &&
				slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, w) }) {
				other, where = w, r.line(at+m[0])
			}
		}
	})
	return other, where
}

// repeats reports whether the found text is also in the prompt and, in the reply, never as was asked for: alone or in
// a block marked json. Then it is more likely a quote of the work than a verdict.
func (r *reply) repeats(found said, prompt []byte) bool {
	own := func(p piece) bool {
		return r.text[p.at:p.end] == string(found.data) && (p.asked || r.where(p) == inWhole)
	}
	return found.where != inWhole && bytes.Contains(prompt, found.data) && strings.Contains(r.text, string(found.data)) &&
		!slices.ContainsFunc(r.pieces, own)
}
