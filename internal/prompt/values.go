package prompt

import (
	"crypto/rand"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"sluice/engine"
	"sluice/internal/text"
)

// Values are what others said, where a text of the spec names it. In the text a mark stands for each, until the
// prompt has it in its place as data. The mark is random, made for one prompt: nothing written before can hold it.
type Values struct {
	sign string
	of   []Note // From is the expression
}

// NewValues returns the values of one prompt, none yet.
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

// mark keeps the value of an expression, and returns what stands for it.
func (v *Values) mark(expression, value string) string {
	v.of = append(v.of, Note{From: expression, Text: value})
	return fmt.Sprintf("%s-%d;", v.sign, len(v.of)-1)
}

// Bounds of a value.
const (
	maxValueLine  = 200      // bytes of one that stands within a line
	maxValue      = 24 << 10 // of one in a block of its own: half of a task
	maxValueTicks = 8        // backticks in a row: few, since the text around is cut at more, fences included
)

// fill returns a text with its values in place, and reports whether there were any. A plain word stands as it is,
// a short line as code, all else as a block of data. Within a fenced block a value stands as it is, but cannot
// close the block.
func (v *Values) fill(s string) (filled string, foreign bool) {
	if v == nil || len(v.of) == 0 {
		return s, false
	}
	var out []string
	var fence text.Fence
	place := regexp.MustCompile(regexp.QuoteMeta(v.sign) + `-(\d+);`)
	for l := range strings.SplitSeq(s, "\n") {
		before := fence
		fence = fence.Next(l)
		inFence := before.Open() || fence.Open() // an info string, too, is no place for a block
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

// cut returns the first value that is not shown in full; nil = all are.
func (v *Values) cut() *Note {
	if v == nil {
		return nil
	}
	for i, n := range v.of {
		if text.Head(n.Text, maxValue) != text.Head(n.Text, math.MaxInt32) {
			return &v.of[i]
		}
	}
	return nil
}

func value(n Note, inFence bool) string {
	s := text.ShortenTicks(text.Head(n.Text, maxValue), maxValueTicks)
	switch {
	case inFence:
		return unfenced(s)
	case strings.TrimSpace(s) == "", regexp.MustCompile(`^[A-Za-z0-9._/+-]{1,64}$`).MatchString(s):
		return s
	case !strings.Contains(s, "\n") && len(s) <= maxValueLine:
		return text.Code(s)
	}
	return "\n\n" + text.Data("The value of "+text.Code(n.From), text.Controls(s), maxValue) + "\n"
}

// unfenced returns s with no line that opens or closes a block.
func unfenced(s string) string {
	return regexp.MustCompile("(?m)^( *)([`~]{3,})").ReplaceAllStringFunc(s, func(m string) string {
		return strings.NewReplacer("`", "'", "~", "-").Replace(m)
	})
}
