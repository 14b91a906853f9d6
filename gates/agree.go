package gates

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"sluice/engine"
	"sluice/internal/schema"
	"sluice/internal/strictjson"
	"sluice/internal/text"
)

// Names of an answer's places in errors. If the reply is more than the JSON, its line is named
// instead.
const (
	inStructured = "the structured output"
	inAnswerFile = "the answer file"
	inWhole      = "the reply"
)

type said struct {
	where string
	data  []byte
}

// verdictOf finds the verdict of a reply: the last readable verdict that is not marked as a quote.
// A faulty or different object after it makes this an error.
func verdictOf(in VerdictInput, r reply, all []piece) (said, engine.Judgement, error) {
	var last error
	for i, p := range slices.Backward(all) {
		err := p.unread()
		var j engine.Judgement
		if err == nil && p.quoted {
			err = errQuoted
		} else if err == nil {
			j, err = readWhole(in, r.data(p))
		}
		if err != nil {
			if last == nil {
				last = fmt.Errorf("%s: %w", r.where(p), err)
			}
			continue
		}
		own := said{r.where(p), r.data(p)}
		for _, q := range all[i+1:] { // these are faulty: a last word that differs must be given again
			if q.quoted && q.err == nil {
				continue
			}
			if q.err != nil || disagrees(in, own, said{"", r.data(q)}) != "" || verdictless(r.data(q)) {
				return said{}, engine.Judgement{}, last
			}
		}
		return own, j, nil
	}
	return said{}, engine.Judgement{}, last
}

// verdictless reports whether an object has no verdict, so that nobody can tell whether it agrees.
func verdictless(data []byte) bool {
	f, _, err := strictjson.Read(data, MaxAnswer)
	return err != nil || !f.Has("verdict")
}

// contradiction returns which place contradicts the verdict in a deciding member, or "". The reply
// may also quote the work; still, two that differ neither pass nor fail.
func contradiction(in VerdictInput, verdict said, r reply, all []piece) string {
	if file := bytes.TrimSpace(in.AnswerFile); verdict.where != inAnswerFile && len(file) > 0 {
		if data, _, err := inFile(file, in.WantToken); err == nil && data != nil {
			if why := disagrees(in, verdict, said{inAnswerFile, data}); why != "" {
				return why
			}
		}
	}
	for _, p := range all {
		other := said{data: r.data(p)}
		if string(other.data) == string(verdict.data) {
			continue
		}
		why := ""
		if err := p.err; err != nil {
			why = fmt.Sprintf("%s gives a verdict, and %s cannot be read: %v", verdict.where, r.where(p), err)
		} else if why = disagrees(in, verdict, other); why != "" {
			other.where = r.where(p)
			why = disagrees(in, verdict, other)
		} else if _, err := readWhole(in, other.data); err != nil && verdictless(other.data) {
			why = fmt.Sprintf("%s gives a verdict, and %s cannot be read: %v", verdict.where, r.where(p), err)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// disagrees returns the deciding member in which a second answer differs from the first, or "".
func disagrees(in VerdictInput, verdict, other said) string {
	own, they := object(verdict.data), object(other.data)
	if own == nil || they == nil {
		return "" // its reader reports what is wrong
	}
	return differ(in, verdict.where, own, other.where, they)
}

func object(data []byte) map[string]any {
	if _, err := strictjson.Check(data, MaxAnswer); err != nil {
		return nil
	}
	v, err := schema.Decode(data)
	if err != nil {
		return nil
	}
	o, _ := v.(map[string]any)
	return o
}

// differ is disagrees for parsed objects. Missing members agree.
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
		case (word || there || key == "score" || key == "scores") && !reflect.DeepEqual(mine, theirs):
			return fmt.Sprintf("its verdicts differ: %s and %s differ in %s", where, otherWhere, text.RevealLine(key, maxWord))
		}
	}
	return ""
}

// shown formats a verdict's word for a message.
func shown(v any) string {
	if v == nil {
		return "none"
	}
	return text.RevealLine(fmt.Sprint(v), maxWord)
}
