package signals

import (
	"slices"
	"strings"
)

const (
	maxMessage = 64 << 10 // bytes of a commit message that are examined
	maxMarker  = 256
)

// Marker reports whether a commit message contains value: at the beginning or the end of the
// subject (its first nonblank line), next to a space, on its own line, or as a trailer (`Gate:
// VALUE` in the last paragraph). Case matters. Spaces and other systems' line ends after the value
// do not matter; a space before it does, because indented lines are quotations (`git merge
// --squash` and `--log` indent the messages they include).
//
// A subject in which git quotes another commit does not count: `Revert "…"`, `Reapply "…"`, `fixup!
// …`, `squash! …`, `amend! …`. A marker after the quotation, or on its own line below, does.
func Marker(message, value string) bool {
	value = strings.TrimSpace(value)
	if value == "" || len(value) > maxMarker || strings.ContainsAny(value, "\r\n\x00") {
		return false
	}
	if len(message) > maxMessage { // a cut line does not count
		message = message[:strings.LastIndexByte(message[:maxMessage], '\n')+1]
	}
	lines := strings.Split(message, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	if len(lines) == 0 {
		return false
	}
	return marked(lines[0], value) || slices.Contains(lines[1:], value) || slices.Contains(trailers(lines), value)
}

// marked reports whether a subject begins or ends with the value, or is it.
func marked(subject, value string) bool {
	if quotes(subject) {
		return false
	}
	before, behind := strings.CutSuffix(subject, value)
	after, ahead := strings.CutPrefix(subject, value)
	return behind && (before == "" || strings.HasSuffix(before, " ") || strings.HasSuffix(before, "\t")) ||
		ahead && (strings.HasPrefix(after, " ") || strings.HasPrefix(after, "\t"))
}

// trailers returns the values of the lines `Key: VALUE` in the last paragraph, unless that has the
// subject.
func trailers(lines []string) (values []string) {
	end := len(lines)
	for end > 0 && lines[end-1] == "" {
		end--
	}
	for i := end - 1; i >= 0; i-- {
		if lines[i] == "" {
			return values
		}
		if key, v, ok := strings.Cut(lines[i], ":"); ok && key != "" && !strings.ContainsAny(key, " \t>*\"") {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return nil
}

// quotes reports whether a subject, to its end, is git's quotation of another commit.
func quotes(subject string) bool {
	for _, made := range []string{`Revert "`, `Reapply "`} {
		if strings.HasPrefix(subject, made) && strings.HasSuffix(subject, `"`) {
			return true
		}
	}
	return slices.ContainsFunc([]string{"fixup! ", "squash! ", "amend! "},
		func(made string) bool { return strings.HasPrefix(subject, made) })
}
