package specs

import (
	"errors"
	"fmt"
	"strings"
)

// Replacements for builtins of expr-lang: each returns a limited text.

func (e *evaluation) text(args ...any) (any, error) {
	if len(args) != 1 {
		return nil, errors.New("string takes one value")
	}
	s, err := print(args[0])
	if err != nil {
		return nil, err
	}
	return e.grown(len(s), func() string { return s })
}

func (e *evaluation) json(args ...any) (any, error) {
	if len(args) != 1 {
		return nil, errors.New("toJSON takes one value")
	}
	b, err := bounded(args[0])
	if err != nil {
		return nil, err
	}
	return e.grown(len(b), func() string { return string(b) })
}

func (e *evaluation) join(args ...any) (any, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, errors.New("join takes a list and a text between its entries")
	}
	list, ok := args[0].([]any)
	if !ok {
		return nil, fmt.Errorf("join takes a list, found %s", valueKind(args[0]))
	}
	between := ""
	if len(args) == 2 {
		if between, ok = args[1].(string); !ok {
			return nil, fmt.Errorf("join puts a text between entries, found %s", valueKind(args[1]))
		}
	}
	texts, size := make([]string, 0, len(list)), 0
	for _, x := range list {
		s, err := print(x)
		if err != nil {
			return nil, err
		}
		if size += len(s) + len(between); size > maxValueBytes {
			return nil, errTooBig
		}
		texts = append(texts, s)
	}
	return e.grown(size, func() string { return strings.Join(texts, between) })
}

func (e *evaluation) replace(args ...any) (any, error) {
	if len(args) != 3 {
		return nil, errors.New("replace takes a text, what to replace, and by what")
	}
	s, ok1 := args[0].(string)
	old, ok2 := args[1].(string)
	by, ok3 := args[2].(string)
	if !ok1 || !ok2 || !ok3 {
		return nil, errors.New("replace takes three texts")
	}
	size := len(s) + strings.Count(s, old)*max(0, len(by)-len(old))
	return e.grown(size, func() string { return strings.ReplaceAll(s, old, by) })
}

func (e *evaluation) repeat(args ...any) (any, error) {
	if len(args) != 2 {
		return nil, errors.New("repeat takes a text and how often")
	}
	s, ok := args[0].(string)
	n, also := toFloat(args[1])
	if !ok || !also || n < 0 || n > maxValueBytes {
		return nil, errors.New("repeat takes a text and how often")
	}
	return e.grown(len(s)*int(n), func() string { return strings.Repeat(s, int(n)) })
}
