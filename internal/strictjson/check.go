package strictjson

import (
	"errors"
	"fmt"
	"strconv"
)

// MaxDepth is how many objects and lists may lie in one another.
const MaxDepth = 64

// State says whether bytes are a document.
type State string

// The states of bytes. None is ever left but Partial, and that only by more
// bytes.
const (
	Whole   State = "whole"   // a document
	Partial State = "partial" // the beginning of one
	Bad     State = "bad"     // no document, whatever follows
)

// errEnd is met where the input ends too early.
var errEnd = errors.New("the input ends")

// Check says whether data is one strict JSON value (of any kind) of at most
// maxBytes. The error is nil for Whole only, and names the byte where reading
// ended.
func Check(data []byte, maxBytes int) (State, error) {
	if len(data) > maxBytes {
		return Bad, fmt.Errorf("more than %d bytes", maxBytes)
	}
	p := parser{data: data}
	return p.state(p.document())
}

// CheckObject is Check for a document that has to be an object.
func CheckObject(data []byte, maxBytes int) (State, error) {
	if len(data) <= maxBytes {
		p := parser{data: data}
		p.space()
		if p.at < len(data) && data[p.at] != '{' {
			if kind := kindOf(data[p.at]); kind != "" {
				return Bad, fmt.Errorf("want an object, found %s", kind)
			}
		}
	}
	return Check(data, maxBytes)
}

// Object is nil if data is one strict JSON object of at most maxBytes.
func Object(data []byte, maxBytes int) error {
	_, err := CheckObject(data, maxBytes)
	return err
}

// kindOf names the kind of value that begins with b, or "" if none does.
func kindOf(b byte) string {
	switch {
	case b == '{':
		return "an object"
	case b == '[':
		return "a list"
	case b == '"':
		return "a text"
	case b == 't' || b == 'f':
		return "true or false"
	case b == 'n':
		return "null"
	case b == '-' || b >= '0' && b <= '9':
		return "a number"
	}
	return ""
}

// parser reads one document. Its methods move at past what they read; the error
// errEnd means that more bytes could make it right.
type parser struct {
	data   []byte
	at     int
	depth  int
	member bool // a key and its colon were read
}

// state is what an error of the parser says of the bytes, and the error for people.
func (p *parser) state(err error) (State, error) {
	switch {
	case err == nil:
		return Whole, nil
	case errors.Is(err, errEnd):
		return Partial, fmt.Errorf("not whole: it ends after %d bytes in the middle of the JSON", len(p.data))
	}
	return Bad, err
}

func (p *parser) bad(format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", p.at, fmt.Sprintf(format, args...))
}

func (p *parser) document() error {
	p.space()
	if err := p.value(); err != nil {
		return err
	}
	p.space()
	if p.at < len(p.data) {
		return p.bad("something follows the end of the JSON")
	}
	return nil
}

func (p *parser) space() {
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) value() error {
	if p.at >= len(p.data) {
		return errEnd
	}
	switch b := p.data[p.at]; {
	case b == '{':
		return p.object()
	case b == '[':
		return p.list()
	case b == '"':
		_, err := p.text()
		return err
	case b == 't':
		return p.word("true")
	case b == 'f':
		return p.word("false")
	case b == 'n':
		return p.word("null")
	case b == '-' || b >= '0' && b <= '9':
		return p.number()
	case b == 0xef && p.at == 0:
		return p.bad("want JSON, found a byte order mark or no JSON: write plain UTF-8")
	}
	return p.bad("want a value, found %q", p.data[p.at])
}

func (p *parser) object() error {
	seen := map[string]string{} // folded key -> key as written
	return p.members('}', func() error {
		if err := p.key(seen); err != nil {
			return err
		}
		return p.value()
	})
}

func (p *parser) list() error { return p.members(']', p.value) }

// members reads an object or a list, from its opening bracket to its closing one.
func (p *parser) members(closing byte, member func() error) error {
	p.depth++
	if p.depth > MaxDepth {
		return p.bad("nested more than %d deep", MaxDepth)
	}
	p.at++
	p.space()
	for more := p.at >= len(p.data) || p.data[p.at] != closing; more; {
		p.space()
		err := member()
		if err == nil {
			more, err = p.next(closing)
		}
		if err != nil {
			return err
		}
	}
	p.at++
	p.depth--
	return nil
}

// key reads a key and its colon, up to the value.
func (p *parser) key(seen map[string]string) error {
	if p.at >= len(p.data) {
		return errEnd
	}
	if p.data[p.at] != '"' {
		return p.bad("want a key in double quotes, found %q", p.data[p.at])
	}
	began := p.at
	key, err := p.text()
	if err != nil {
		return err
	}
	folded := Fold(key)
	if before, doubled := seen[folded]; doubled {
		p.at = began
		if before == key {
			return p.bad("the key %.60q is there twice", key)
		}
		return p.bad("the keys %.60q and %.60q differ in case only", before, key)
	}
	seen[folded] = key
	p.space()
	if p.at >= len(p.data) {
		return errEnd
	}
	if p.data[p.at] != ':' {
		return p.bad("want a colon after the key %.60q, found %q", key, p.data[p.at])
	}
	p.at++
	p.member = true
	p.space()
	return nil
}

// next reads up to the next member, or up to the closing bracket.
func (p *parser) next(closing byte) (more bool, err error) {
	p.space()
	if p.at >= len(p.data) {
		return false, errEnd
	}
	switch p.data[p.at] {
	case ',':
		p.at++
		return true, nil
	case closing:
		return false, nil
	}
	return false, p.bad("want a comma or %q, found %q", closing, p.data[p.at])
}

func (p *parser) word(want string) error {
	for i := range len(want) {
		if p.at >= len(p.data) {
			return errEnd
		}
		if p.data[p.at] != want[i] {
			return p.bad("want %s, found %q", want, p.data[p.at])
		}
		p.at++
	}
	return nil
}

// number reads a number. At the very end of the input it counts as one, though
// more digits could follow: only a document that is a bare number ends so.
func (p *parser) number() error {
	began := p.at
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
	} else if err := p.digits(); err != nil {
		return err
	}
	if p.peek() == '.' {
		p.at++
		if err := p.digits(); err != nil {
			return err
		}
	}
	if b := p.peek(); b == 'e' || b == 'E' {
		p.at++
		if b := p.peek(); b == '+' || b == '-' {
			p.at++
		}
		if err := p.digits(); err != nil {
			return err
		}
	}
	if p.at == len(p.data) && p.depth > 0 {
		return errEnd
	}
	_, err := strconv.ParseFloat(string(p.data[began:p.at]), 64)
	if err != nil {
		p.at = began
		return p.bad("a number out of range")
	}
	return nil
}

// peek is the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.data) {
		return p.data[p.at]
	}
	return 0
}

func (p *parser) digits() error {
	if p.at >= len(p.data) {
		return errEnd
	}
	began := p.at
	for b := p.peek(); b >= '0' && b <= '9'; b = p.peek() {
		p.at++
	}
	if p.at == began {
		return p.bad("want a digit, found %q", p.data[p.at])
	}
	return nil
}
