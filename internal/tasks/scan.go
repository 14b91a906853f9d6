package tasks

// object is where a JSON object stands, and where its members' values do.
type object struct {
	begin, end int // of its braces: src[begin] is {, src[end] is }
	members    map[string]span
}

type span struct{ begin, end int }

// scanner finds places in a text that is known to be JSON.
type scanner struct {
	src []byte
	at  int
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func (s *scanner) space() {
	for s.at < len(s.src) && blank(s.src[s.at]) {
		s.at++
	}
}

// object reads the object at the scanner's place, and goes behind it.
func (s *scanner) object() object {
	o := object{begin: s.at, members: map[string]span{}}
	for s.at++; ; {
		switch s.space(); s.src[s.at] {
		case '}':
			o.end = s.at
			s.at++
			return o
		case ',':
			s.at++
			continue
		}
		begin := s.at
		s.text()
		key, _ := plainText(s.src[begin:s.at])
		s.space()
		s.at++ // the colon
		s.space()
		begin = s.at
		s.value()
		o.members[key] = span{begin, s.at}
	}
}

// text goes behind a quoted text.
func (s *scanner) text() {
	for s.at++; s.src[s.at] != '"'; s.at++ {
		if s.src[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}

// value goes behind a value.
func (s *scanner) value() {
	depth := 0
	for ; s.at < len(s.src); s.at++ {
		switch c := s.src[s.at]; {
		case c == '"':
			s.text()
			s.at--
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']') && depth == 0, c == ',' && depth == 0, blank(c) && depth == 0:
			return
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				s.at++
				return
			}
		}
		if s.src[s.at] == '"' && depth == 0 {
			s.at++
			return
		}
	}
}
