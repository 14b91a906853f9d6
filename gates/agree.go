package gates

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sluice/internal/schema"
	"sluice/internal/strictjson"
)

// The places that an answer may stand in, as errors name them.
const (
	inStructured = "the structured output"
	inAnswerFile = "the answer file"
	inBlock      = "a block of the reply"
	inWhole      = "the reply"
	inBareLine   = "a line of the reply"
	inAnother    = "another"
)

// said is what stands in one place.
type said struct {
	where string
	data  []byte
}

// contradiction says which place says another thing than the verdict that was found, in what decides; "" where none
// does. What is quoted from the work may stand in a block too: that two differ never passes, and never fails.
func contradiction(in VerdictInput, verdict said) string {
	v, err := schema.Decode(verdict.data)
	own, ok := v.(map[string]any)
	if err != nil || !ok {
		return "" // what it lacks is told by who reads it
	}
	for _, other := range elsewhere(in, verdict) {
		if _, err := strictjson.Check(other.data, MaxAnswer); err != nil {
			if bytes.Contains(bytes.ToLower(other.data), []byte(`"verdict"`)) {
				return fmt.Sprintf("%s gives a verdict, and %s cannot be read: %v", verdict.where, other.where, err)
			}
			continue
		}
		v, err := schema.Decode(other.data)
		they, ok := v.(map[string]any)
		if err != nil || !ok {
			continue
		}
		if why := differ(in, verdict.where, own, other.where, they); why != "" {
			return why
		}
	}
	return ""
}

// elsewhere is what stands in the other places, the nearest to the verdict last.
func elsewhere(in VerdictInput, verdict said) (out []said) {
	if file := bytes.TrimSpace(in.AnswerFile); verdict.where != inAnswerFile && len(file) > 0 {
		if data, _, err := inFile(file, in); err == nil && data != nil {
			out = append(out, said{inAnswerFile, data})
		}
	}
	text := strings.TrimSpace(string(in.Output))
	var found []said
	for _, b := range blocks(text) {
		if isJSON(b.info) {
			found = append(found, said{inBlock, []byte(strings.TrimSpace(b.text))})
		}
	}
	for _, l := range plainLines(text) { // a quote is in a block, indented, or behind a >
		if isVerdict([]byte(l)) && l != text {
			out = append(out, said{inBareLine, []byte(l)})
		}
	}
	switch {
	case verdict.where == inWhole:
	case verdict.where == inBlock:
		for _, b := range found[:len(found)-1] {
			out = append(out, said{inAnother, b.data})
		}
	case len(found) > 0:
		out = append(out, found...)
	case strings.HasPrefix(text, "{"):
		out = append(out, said{inWhole, []byte(text)})
	}
	return out
}

// isVerdict reports whether a text is an object with a verdict, though no fence calls it JSON.
func isVerdict(data []byte) bool {
	if !bytes.HasPrefix(data, []byte("{")) || !bytes.Contains(bytes.ToLower(data), []byte(`"verdict"`)) {
		return false
	}
	_, err := strictjson.Check(data, MaxAnswer)
	return err == nil
}

// differ says in which member that decides a second answer differs from the first. What it does not name agrees.
func differ(in VerdictInput, where string, own map[string]any, otherWhere string, they map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(they)) {
		theirs := they[key]
		mine, there := own[key]
		switch word := strictjson.Fold(key) == strictjson.Fold("verdict"); {
		case word && !in.Computed:
			if mine = own["verdict"]; !reflect.DeepEqual(mine, theirs) {
				return fmt.Sprintf("its verdicts differ: %s says %s, %s says %s", where, shown(mine), otherWhere, shown(theirs))
			}
		case !in.Computed || key == "feedback" || key == "summary" || key == tokenKey:
		case (word || there) && !reflect.DeepEqual(mine, theirs):
			return fmt.Sprintf("its verdicts differ: %s and %s differ in %s", where, otherWhere, line(key, maxWord))
		}
	}
	return ""
}

// shown is a verdict's word in a message.
func shown(v any) string {
	if v == nil {
		return "none"
	}
	return line(fmt.Sprint(v), maxWord)
}
