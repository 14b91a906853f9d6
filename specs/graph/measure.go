package graph

import (
	"strings"
	"unicode"
)

// Sizes of text, in pixels.
const (
	sizeHead  = 13.0
	sizeWho   = 11.0
	sizeLabel = 10.5
)

// textWidth is about how wide a text is in the common sans-serif fonts, rather more than less.
func textWidth(s string, size float64) (w float64) {
	for _, r := range s {
		w += runeWidth(r)
	}
	return w * size
}

func runeWidth(r rune) float64 {
	switch {
	case strings.ContainsRune("ijl|'.,:;!", r):
		return 0.33
	case strings.ContainsRune("ftr -()[]/I", r):
		return 0.42
	case strings.ContainsRune("mwMW@%…&", r):
		return 0.98
	case r >= 0x1100 && (r < 0x2000 || r > 0x2BFF):
		return 1.1
	case unicode.IsUpper(r):
		return 0.76
	}
	return 0.63
}

// fitted clips a text to a width.
func fitted(s string, size, most float64) string {
	if textWidth(s, size) <= most {
		return s
	}
	w := runeWidth('…') * size
	for i, r := range s {
		if w += runeWidth(r) * size; w > most {
			return s[:i] + "…"
		}
	}
	return s
}

func labelWidth(label string) float64 {
	if label == "" {
		return 0
	}
	return textWidth(label, sizeLabel) + labelPad
}
