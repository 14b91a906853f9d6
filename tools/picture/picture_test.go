package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestSVG: styles become attributes, foreign text stays text, and only one frame is seen at a time.
func TestSVG(t *testing.T) {
	svg := string(SVG("a & b", 20, 2, []Frame{
		{"\x1b[1mbold\x1b[0m <script>\n\x1b[33mcarried on\nnot drawn", time.Second},
		{"\x1b[7mrow\x1b[27m \x1b[2mdim\x1b[22;32m日本\x1b[39m\n" + strings.Repeat("x", 50), 3 * time.Second},
	}))
	for _, want := range []string{`aria-label="a &amp; b"`, `class="b">bold<`, `&lt;script&gt;`, `class="d">dim<`, `style="fill:#98c379">日本<`,
		"carried\u00a0on", `>` + strings.Repeat("x", 20) + `<`, `@keyframes k1{0%{opacity:0}25.000%{opacity:1}100.000%{opacity:0}}`, `animation:4.0s step-end infinite`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if strings.Contains(svg, "not drawn") || strings.Contains(svg, "\x1b") {
		t.Errorf("what does not fit, or a sequence, is in\n%s", svg)
	}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
