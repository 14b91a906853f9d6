package console

import "io"

// Styles are the terminal's own sixteen colours, as parameters of the escape sequence that sets
// them: so they fit its theme.
const (
	Plain  = ""
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Blue   = "36"
)

// ColourOn reports whether a stream gets colours: a terminal that knows them, unless the person wants none.
func (c *Console) ColourOn(w io.Writer) bool {
	if c.Getenv("NO_COLOR") != "" || c.Getenv("TERM") == "dumb" {
		return false
	}
	_, ok := Terminal(w)
	return ok
}

// paint puts the escape sequences of a style around s.
func paint(on bool, style, s string) string {
	if !on || style == Plain || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// Paint styles a text for Out.
func (c *Console) Paint(style, s string) string { return paint(c.Colour, style, s) }

// PaintErr styles a text for Err.
func (c *Console) PaintErr(style, s string) string { return paint(c.ColourOn(c.Err), style, s) }
