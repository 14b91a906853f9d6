package signals

import (
	"slices"
	"strings"
)

const (
	maxMessage = 64 << 10 // bytes of a commit message that are looked at
	maxMarker  = 256
)

// Marker reports whether a commit message says value: at the beginning or the
// end of the subject (its first line that is not blank), beside a space, on a
// line of its own, or as a trailer (`Gate: VALUE` in the last paragraph).
// Letters are compared as they are; space and line ends of other systems after
// the value do not matter, space before it does: indented lines are quotations
// (`git merge --squash` and `--log` indent the messages they take over).
//
// A subject that git made by quoting another commit's does not count: `Revert
// "…"`, `Reapply "…"`, `fixup! …`, `squash! …`, `amend! …`. A marker that was
// written behind the quotation, or on a line of its own below, does.
func Marker(message, value string) bool {
	value = strings.TrimSpace(value)
	if value == "" || len(value) > maxMarker || strings.ContainsAny(value, "\r\n\x00") {
		return false
	}
	if len(message) > maxMessage { // a line that is cut does not count
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

// trailers are the values of the lines `Key: VALUE` of the last paragraph, where that is not the subject's.
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

// quotes tells whether git made a subject, to its very end, out of another
// commit's.
func quotes(subject string) bool {
	for _, made := range []string{`Revert "`, `Reapply "`} {
		if strings.HasPrefix(subject, made) && strings.HasSuffix(subject, `"`) {
			return true
		}
	}
	for _, made := range []string{"fixup! ", "squash! ", "amend! "} {
		if strings.HasPrefix(subject, made) {
			return true
		}
	}
	return false
}
