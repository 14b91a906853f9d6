package specs

import "strings"

// tidy returns the line without indentation and with one space after dashes, keys and commas. after
// is how many bytes preceded a key that follows dashes.
func (l *arrangement) tidy(row, at int) (out string, after int) {
	line := l.lines[row]
	begin := at
	for at < len(line) && line[at] == '-' && (at+1 == len(line) || line[at+1] == ' ') {
		out += "- "
		for at++; at < len(line) && line[at] == ' '; {
			at++
		}
	}
	if after = at - begin; at >= len(line) {
		return strings.TrimRight(out, " "), after
	}
	if end := l.keyEnd(row, at); end > at {
		out += line[at:end]
		for at = end; at < len(line) && line[at] == ' '; {
			at++
		}
		if at == len(line) {
			return out, after
		}
		if line[at] == '#' {
			return out + gapOf(line[end:at]) + line[at:], after
		}
		out += " "
	}
	value, end := l.valueOf(row, at)
	rest := strings.TrimLeft(line[end:], " ")
	if strings.HasPrefix(rest, "#") {
		return out + value + gapOf(line[end:len(line)-len(rest)]) + rest, after
	}
	return out + value + line[end:], after
}

// gapOf returns the space before a comment: the author's, but at least two.
func gapOf(spaces string) string {
	if len(spaces) < 2 {
		return "  "
	}
	return spaces
}

// keyEnd returns the end of a key and its colon, or at if there is none.
func (l *arrangement) keyEnd(row, at int) int {
	line := l.lines[row]
	end := at
	switch line[at] {
	case '{', '[', '&', '*', '!', '?', '|', '>', '#', '%', '@', '`':
		return at
	case '"', '\'':
		last, e := l.closes(row, at)
		if last != row {
			return at
		}
		end = e
	default:
		i := strings.Index(line[at:]+" ", ": ")
		c := strings.Index(line[at:], " #")
		if i < 0 || c >= 0 && c < i {
			return at
		}
		end = at + i
	}
	if end < len(line) && line[end] == ':' && (end+1 == len(line) || line[end+1] == ' ') {
		return end + 1
	}
	return at
}

// valueOf returns a one-line value as formatted, and its end. Of a longer value, it returns the
// first line.
func (l *arrangement) valueOf(row, at int) (value string, end int) {
	line := l.lines[row]
	switch line[at] {
	case '"', '\'', '{', '[':
		last, e := l.closes(row, at)
		if last != row {
			return line[at:], len(line)
		}
		if line[at] == '"' || line[at] == '\'' || !l.flows {
			return line[at:e], e
		}
		return spaced(line[at:e]), e
	}
	end = len(line)
	if i := strings.Index(line[at:], " #"); i >= 0 {
		end = at + i
	}
	value = strings.TrimRight(line[at:end], " ")
	return value, at + len(value)
}

// spaced formats a one-line flow with a space after commas and colons, and none inside brackets.
func spaced(flow string) string {
	var b strings.Builder
	trim := func() {
		s := strings.TrimRight(b.String(), " ")
		b.Reset()
		b.WriteString(s)
	}
	skip := func(i int) int {
		for i+1 < len(flow) && flow[i+1] == ' ' {
			i++
		}
		return i
	}
	quote := byte(0)
	for i := 0; i < len(flow); i++ {
		c := flow[i]
		switch {
		case quote != 0:
			b.WriteByte(c)
			if c == '\\' && quote == '"' && i+1 < len(flow) {
				i++
				b.WriteByte(flow[i])
			} else if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && strings.ContainsRune(" ,[{:", rune(before(flow, i))):
			quote = c
			b.WriteByte(c)
		case c == '[' || c == '{':
			b.WriteByte(c)
			i = skip(i)
		case c == ']' || c == '}':
			trim()
			b.WriteByte(c)
		case c == ',' || c == ':' && i+1 < len(flow) && flow[i+1] == ' ':
			trim()
			b.WriteByte(c)
			if i = skip(i); i+1 < len(flow) && flow[i+1] != ']' && flow[i+1] != '}' {
				b.WriteByte(' ')
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
