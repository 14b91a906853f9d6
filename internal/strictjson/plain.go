package strictjson

import (
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// PlainMost is how many times as long JSON may become by [Plain].
const PlainMost = 6

// Plain gives the same JSON with each character that a terminal or an editor acts on instead of
// showing it (C1 and DEL, bidi and other format characters, line separators, private ones) as its
// number: \u009b, \u202e. It takes JSON of encoding/json, and leaves what is plain as it is.
func Plain(data []byte) []byte {
	from := 0
	for from < len(data) && data[from] < 0x7f {
		from++
	}
	if from == len(data) {
		return data
	}
	out := append(make([]byte, 0, len(data)+len(data)/8+64), data[:from]...)
	for i := from; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r < 0x7f, size > 1 && !unicode.In(r, unicode.C, unicode.Zl, unicode.Zp):
			out = append(out, data[i:i+size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	return out
}
