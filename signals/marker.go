package signals

import "strings"

const (
	maxMessage = 64 << 10 // bytes of a commit message that are looked at
	maxMarker  = 256
)

// Marker tells whether a commit message says value: on a line of its own, or at
// the end of the subject line (its first line that is not blank) after a space.
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
	subject := true
	for line := range strings.SplitSeq(message, "\n") {
		line = strings.TrimRight(line, " \t\r")
		if line == "" {
			continue
		}
		if !subject || !quotes(line) {
			if line == value || subject && (strings.HasSuffix(line, " "+value) || strings.HasSuffix(line, "\t"+value)) {
				return true
			}
		}
		subject = false
	}
	return false
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
