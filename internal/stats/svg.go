package stats

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"time"

	"sluice/engine"
)

// Sizes of the picture, in pixels.
const (
	svgWidth, svgMargin       = 720, 16
	svgBars, svgRow, svgLabel = 120, 22, 220
	svgDays, svgGates         = 60, 40 // drawn at most: the newest days, the gates with most rounds
)

const svgStyle = `text{font:12px system-ui,sans-serif;fill:#333}.h{font-weight:600}.d{fill:#888}` +
	`.ok{fill:#2e8b57}.no{fill:#c0392b}.via{fill:#d4a017}.bar{fill:#4a7fb5}` +
	`@media(prefers-color-scheme:dark){text{fill:#ddd}.d{fill:#999}}`

// SVG draws what each day used and how each gate decided.
func SVG(s Stats) []byte {
	p := &picture{}
	y := svgMargin + 8
	days, value, unit := daily(s.Days)
	if len(days) > 0 {
		p.text(svgMargin, y, "h", "By day: "+unit)
		most := 0.0
		for _, d := range days {
			most = max(most, value(d))
		}
		wide := (svgWidth - 2*svgMargin) / max(len(days), 14)
		for i, d := range days {
			high := 0
			if most > 0 {
				high = int(value(d) / most * svgBars)
			}
			p.rect(svgMargin+i*wide, y+8+svgBars-high, max(wide-2, 1), high, "bar",
				fmt.Sprintf("%s: %.2f %s", d.Name, value(d), unit))
		}
		y += svgBars + 24
		p.text(svgMargin, y, "d",
			fmt.Sprintf("%s to %s, at most %.2f a day", days[0].Name, days[len(days)-1].Name, most))
		y += 28
	}
	p.gates(&y, s.Gates)
	return p.done(y)
}

// daily returns the newest days and what to draw of them: cost, else tokens, else the time of work.
func daily(all []Used) (days []Used, value func(Used) float64, unit string) {
	days = all[max(len(all)-svgDays, 0):]
	var sum engine.Usage
	for _, d := range days {
		sum.CostUSD, sum.Tokens = sum.CostUSD+d.CostUSD, sum.Tokens+d.Tokens
	}
	switch {
	case sum.CostUSD > 0:
		return days, func(u Used) float64 { return u.CostUSD }, "USD"
	case sum.Tokens > 0:
		return days, func(u Used) float64 { return float64(u.Tokens) / 1e6 }, "million tokens"
	}
	if !slices.ContainsFunc(days, func(u Used) bool { return time.Duration(u.Time) >= time.Hour }) {
		return days, func(u Used) float64 { return time.Duration(u.Time).Minutes() }, "minutes of work"
	}
	return days, func(u Used) float64 { return time.Duration(u.Time).Hours() }, "hours of work"
}

type picture struct{ b bytes.Buffer }

func (p *picture) gates(y *int, all []Gate) {
	gates := slices.Clone(all)
	slices.SortStableFunc(gates, func(a, b Gate) int { return b.Rounds - a.Rounds })
	gates = gates[:min(len(gates), svgGates)]
	if len(gates) == 0 {
		return
	}
	p.text(svgMargin, *y, "h", "Rounds by gate: passed, failed, by a route")
	most := max(gates[0].Rounds, 1)
	for _, g := range gates {
		*y += svgRow
		name := []rune(g.Workflow + "/" + g.Gate)
		if len(name) > 32 {
			name = append(name[:31], '…')
		}
		p.text(svgMargin, *y, "", string(name))
		x := svgMargin + svgLabel
		for _, part := range []struct {
			n     int
			class string
			words string
		}{{g.Passed, "ok", "passed"}, {g.Failed, "no", "failed"}, {g.Routed, "via", "by a route"}} {
			wide := part.n * (svgWidth - svgLabel - 2*svgMargin - 40) / most
			p.rect(x, *y-12, wide, 14, part.class, fmt.Sprintf("%d %s", part.n, part.words))
			x += wide
		}
		p.text(x+6, *y, "d", fmt.Sprint(g.Rounds))
	}
	*y += svgRow
}

func (p *picture) text(x, y int, class, s string) {
	fmt.Fprintf(&p.b, `<text x="%d" y="%d" class="%s">`, x, y, class)
	_ = xml.EscapeText(&p.b, []byte(s)) // a buffer does not fail
	p.b.WriteString("</text>\n")
}

func (p *picture) rect(x, y, w, h int, class, title string) {
	if w <= 0 || h <= 0 {
		return
	}
	fmt.Fprintf(&p.b, `<rect x="%d" y="%d" width="%d" height="%d" class="%s"><title>`, x, y, w, h, class)
	_ = xml.EscapeText(&p.b, []byte(title))
	p.b.WriteString("</title></rect>\n")
}

func (p *picture) done(height int) []byte {
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" `+
		`role="img">`+
		"<title>sluice stats</title><style>%[3]s</style>\n", svgWidth, height, svgStyle)
	return append([]byte(head), append(p.b.Bytes(), "</svg>\n"...)...)
}
