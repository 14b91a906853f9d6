package console

import (
	"strings"

	"rsc.io/qr"
)

// qrMargin is how many light modules stand around a QR code: cameras look for them.
const qrMargin = 4

// qrColours are black on white, whatever the terminal's theme is: not every camera reads a code that
// is light on dark.
const qrColours = "38;5;16;48;5;231"

// PrintQR prints a text as a QR code, if Out is a terminal that is wide enough; it reports whether it
// did. Without colours it takes the terminal to be dark.
func (c *Console) PrintQR(s string) bool {
	code, err := qr.Encode(s, qr.L)
	if err != nil || c.Width() < code.Size+2*qrMargin {
		return false
	}
	for _, line := range qrLines(code.Size, code.Black, c.Colour) {
		c.Print("%s", c.Paint(qrColours, line))
	}
	return true
}

// qrLines draws two rows of modules in a line of text. ink says that the text's colour is the dark
// one.
func qrLines(size int, dark func(x, y int) bool, ink bool) []string {
	var out []string
	for y := -qrMargin; y < size+qrMargin; y += 2 {
		var b strings.Builder
		for x := -qrMargin; x < size+qrMargin; x++ {
			upper, lower := dark(x, y) == ink, dark(x, y+1) == ink // what the text's colour fills
			switch {
			case upper && lower:
				b.WriteRune('█')
			case upper:
				b.WriteRune('▀')
			case lower:
				b.WriteRune('▄')
			default:
				b.WriteRune(' ')
			}
		}
		out = append(out, b.String())
	}
	return out
}
