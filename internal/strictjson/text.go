package strictjson

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a text in quotes and gives what it says.
func (p *parser) text() (string, error) {
	p.at++
	var out []byte
	for {
		if p.at >= len(p.data) {
			return "", errEnd
		}
		switch b := p.data[p.at]; {
		case b == '"':
			p.at++
			return string(out), nil
		case b == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		case b < 0x20:
			return "", p.bad("a control character (%#02x) in a text: write it as an escape", b)
		case b < utf8.RuneSelf:
			out = append(out, b)
			p.at++
		default:
			rest := p.data[p.at:]
			r, size := utf8.DecodeRune(rest)
			if r == utf8.RuneError && size == 1 {
				if !utf8.FullRune(rest) {
					return "", errEnd
				}
				return "", p.bad("invalid UTF-8")
			}
			out = append(out, rest[:size]...)
			p.at += size
		}
	}
}

// escape reads a backslash and what belongs to it.
func (p *parser) escape() (rune, error) {
	if p.at+1 >= len(p.data) {
		return 0, errEnd
	}
	const plain, meaning = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	b := p.data[p.at+1]
	for i := range len(plain) {
		if plain[i] == b {
			p.at += 2
			return rune(meaning[i]), nil
		}
	}
	if b != 'u' {
		return 0, p.bad("an unknown escape \\%c", rune(b))
	}
	began := p.at
	bad := func(why string) (rune, error) {
		p.at = began
		return 0, p.bad("%s", why)
	}
	p.at += 2
	r, err := p.hex4()
	switch {
	case err != nil:
		return 0, err
	case r == 0:
		return bad("NUL in a text")
	case !utf16.IsSurrogate(r):
		return r, nil
	case r >= 0xdc00: // the low half
		return bad("half of a surrogate pair")
	}
	for _, want := range []byte(`\u`) {
		if p.at >= len(p.data) {
			return 0, errEnd
		}
		if p.data[p.at] != want {
			return bad("half of a surrogate pair")
		}
		p.at++
	}
	low, err := p.hex4()
	if err != nil {
		return 0, err
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return bad("half of a surrogate pair")
	}
	return r, nil
}

func (p *parser) hex4() (rune, error) {
	var r rune
	for range 4 {
		if p.at >= len(p.data) {
			return 0, errEnd
		}
		b := p.data[p.at]
		switch {
		case b >= '0' && b <= '9':
			r = r<<4 + rune(b-'0')
		case b|0x20 >= 'a' && b|0x20 <= 'f':
			r = r<<4 + rune(b|0x20-'a') + 10
		default:
			return 0, p.bad("want four hex digits after \\u, found %q", b)
		}
		p.at++
	}
	return r, nil
}

// Fold is s with every letter replaced by the least of those that differ from it
// in case only, so that two texts are equal but for case if their folds are
// equal. It knows all of Unicode (the Kelvin sign is a k, as encoding/json
// believes too).
func Fold(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		out = utf8.AppendRune(out, least)
	}
	return string(out)
}
