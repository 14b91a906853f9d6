package prompt

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sluice/engine"
	"sluice/internal/text"
)

// Values are texts of others that stand within a text of the spec: a mark holds the place of each, until Filled puts it there
// as data. The mark is random, made for one prompt: no text that was written before can hold it.
type Values struct {
	sign string
	of   []Note // From is the expression
}

// NewValues is the start of the values of a prompt.
func NewValues() *Values { return &Values{sign: "value-" + rand.Text()} }

// Text returns a text of the spec in which marks stand for what others said.
func (v *Values) Text(t engine.Text, env *engine.Env) (string, error) {
	own := engine.Env{}
	if env != nil {
		own = *env
	}
	own.Foreign = v.mark
	return t.String(&own)
}

// mark keeps a text, and gives what holds its place. source is the expression that it is the value of.
func (v *Values) mark(source, text string) string {
	v.of = append(v.of, Note{From: source, Text: text})
	return fmt.Sprintf("%s-%d;", v.sign, len(v.of)-1)
}

// Bounds of a text that stands for a value.
const (
	maxValueLine  = 200      // bytes of one that stands within a line
	maxValue      = 12 << 10 // of one in a block of its own
	maxValueTicks = 8        // backticks in a row
)

// Filled is the text with its values in place, and whether there were any: a plain word as it is, a short line as code, all
// else as a block of data. Within a fenced block of the text a value stands as it is, but cannot close it.
func Filled(body string, v *Values) (filled string, foreign bool) {
	if v == nil || len(v.of) == 0 {
		return body, false
	}
	var out []string
	var fence text.Fence
	place := regexp.MustCompile(regexp.QuoteMeta(v.sign) + `-(\d+);`)
	for _, l := range strings.Split(body, "\n") {
		inFence := fence.Open()
		fence = fence.Next(l)
		inFence = inFence || fence.Open() // an info string, too, is no place for a block
		out = append(out, place.ReplaceAllStringFunc(l, func(m string) string {
			i, err := strconv.Atoi(place.FindStringSubmatch(m)[1])
			if err != nil || i >= len(v.of) {
				return ""
			}
			return value(v.of[i], inFence)
		}))
	}
	return strings.Join(out, "\n"), true
}

func value(n Note, inFence bool) string {
	// Of its rows of backticks few are kept: the text around is cleaned too, and no fence in it may come to be cut.
	body := text.ShortenTicks(text.Head(n.Text, maxValue), maxValueTicks)
	switch {
	case inFence:
		return unfenced(body)
	case strings.TrimSpace(body) == "", regexp.MustCompile(`^[A-Za-z0-9._/+-]{1,64}$`).MatchString(body):
		return body
	case !strings.Contains(body, "\n") && len(body) <= maxValueLine:
		return text.Code(body)
	}
	return "\n\n" + text.Data("The value of "+text.Code(n.From), body, maxValue) + "\n"
}

// unfenced is a text no line of which is a fence.
func unfenced(s string) string {
	return regexp.MustCompile("(?m)^( *)([`~]{3,})").ReplaceAllStringFunc(s, func(m string) string {
		return strings.NewReplacer("`", "'", "~", "-").Replace(m)
	})
}
