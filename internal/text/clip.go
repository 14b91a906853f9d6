package text

import "strings"

// Clip returns at most most bytes of s, as whole characters; where it cuts, the text ends in "…".
func Clip(s string, most int) string { return Cut(s, most, "…") }

// Cut is Clip with another mark for what was cut; "" = none. The mark is within the bytes.
func Cut(s string, most int, mark string) string {
	if len(mark) > most {
		mark = ""
	}
	if len(s) > most {
		at := max(most-len(mark), 0)
		for at > 0 && s[at]&0xC0 == 0x80 {
			at--
		}
		s = s[:at] + mark
	}
	return strings.ToValidUTF8(s, "")
}
