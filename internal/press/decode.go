package press

import (
	"bytes"
	"unicode/utf8"
)

// Modes of the terminal in which a paste is told from keys, and the marks around one.
const (
	PasteOn  = "\x1b[?2004h"
	PasteOff = "\x1b[?2004l"

	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	escape     = 0x1b
	mostKey    = 32 // bytes of one key
)

// Key is a key as the terminal sends it, or a part of what was pasted.
type Key struct {
	Text   string
	Pasted bool
}

// Decoder makes keys of a terminal's input.
type Decoder struct {
	rest    []byte // the beginning of a key
	pasting bool
}

// Keys returns the keys in what was read.
func (d *Decoder) Keys(b []byte) (out []Key) {
	b = append(d.rest, b...)
	d.rest = nil
	for len(b) > 0 {
		if d.pasting {
			i := bytes.Index(b, []byte(pasteEnd))
			if i < 0 {
				n := len(b) - begun(b)
				d.rest = append([]byte(nil), b[n:]...)
				return pasted(out, b[:n])
			}
			out, b, d.pasting = pasted(out, b[:i]), b[i+len(pasteEnd):], false
			continue
		}
		n := keyLen(b)
		if n == 0 && len(b) < mostKey {
			d.rest = append([]byte(nil), b...)
			return out
		}
		key := string(b[:max(n, 1)])
		b = b[len(key):]
		if d.pasting = key == pasteBegin; !d.pasting {
			out = append(out, Key{Text: key})
		}
	}
	return out
}

func pasted(out []Key, b []byte) []Key {
	if len(b) == 0 {
		return out
	}
	return append(out, Key{Text: string(b), Pasted: true})
}

// begun is how many bytes at the end may begin the mark that ends a paste.
func begun(b []byte) int {
	for n := min(len(b), len(pasteEnd)-1); n > 0; n-- {
		if bytes.HasSuffix(b, []byte(pasteEnd[:n])) {
			return n
		}
	}
	return 0
}

// keyLen is how many bytes the first key has; 0 = not all of it is there.
func keyLen(b []byte) int {
	if b[0] != escape {
		if !utf8.FullRune(b) {
			return 0
		}
		_, n := utf8.DecodeRune(b)
		return n
	}
	switch {
	case len(b) == 1:
		return 1
	case b[1] == 'O':
		return fits(3, b)
	case b[1] != '[':
		return 2
	}
	for i := 2; i < len(b); i++ {
		if b[i] >= 0x40 && b[i] <= 0x7e {
			return i + 1
		}
	}
	return 0
}

func fits(n int, b []byte) int {
	if len(b) < n {
		return 0
	}
	return n
}
