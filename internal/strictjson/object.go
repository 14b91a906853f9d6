package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Fields is a strict object whose members are asked for by name and type. A
// member that is null counts as absent. Faults are gathered; see Err.
type Fields struct {
	members map[string]json.RawMessage
	path    string   // what the members' names begin with in faults
	faults  *[]error // shared by an object and those inside it
}

// Read takes an object apart. The Fields are nil unless the state is Whole.
func Read(data []byte, maxBytes int) (*Fields, State, error) {
	if state, err := CheckObject(data, maxBytes); err != nil {
		return nil, state, err
	}
	f, err := fields(data, "", new([]error))
	if err != nil {
		return nil, Bad, fmt.Errorf("not JSON after all: %w", err)
	}
	return f, Whole, nil
}

func fields(data []byte, path string, faults *[]error) (*Fields, error) {
	f := &Fields{path: path, faults: faults}
	if err := json.Unmarshal(data, &f.members); err != nil {
		return nil, err
	}
	return f, nil
}

// Err is all that was wrong with the members asked for, here and in the objects
// inside, or nil.
func (f *Fields) Err() error { return errors.Join(*f.faults...) }

// Fault adds a fault of the caller's own finding.
func (f *Fields) Fault(key, format string, args ...any) {
	*f.faults = append(*f.faults, fmt.Errorf("%s%s: %s", f.path, key, fmt.Sprintf(format, args...)))
}

// Has reports whether the member is there and not null.
func (f *Fields) Has(key string) bool { return f.Raw(key) != nil }

// Raw is the member as it was written, nil if it is absent.
func (f *Fields) Raw(key string) json.RawMessage {
	raw := f.members[key]
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// Keys are the names of all members, sorted.
func (f *Fields) Keys() []string {
	return slices.Sorted(maps.Keys(f.members))
}

// Exactly faults each member whose name is one of those known but for its case:
// the caller reads the one that is written as known, and a "Status" that nobody
// reads would say its opposite.
func (f *Fields) Exactly(known ...string) {
	for _, key := range f.Keys() {
		for _, k := range known {
			if key != k && Fold(key) == Fold(k) {
				f.Fault(key, "unknown key: write it %q", k)
			}
		}
	}
}

// Text is a member that is a text of at most maxBytes, "" if it is absent.
func (f *Fields) Text(key string, maxBytes int) string {
	var s string
	f.into(key, '"', "a text", &s)
	if len(s) > maxBytes {
		f.Fault(key, "more than %d bytes", maxBytes)
		return ""
	}
	return s
}

// Texts is a member that is a list of at most max texts.
func (f *Fields) Texts(key string, max int) []string {
	var list []json.RawMessage
	f.into(key, '[', "a list", &list)
	if len(list) > max {
		f.Fault(key, "more than %d of them", max)
		return nil
	}
	var out []string
	for i, raw := range list {
		if raw[0] != '"' {
			f.Fault(fmt.Sprintf("%s[%d]", key, i), "want a text, found %s", kindOf(raw[0]))
			continue
		}
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			f.Fault(key, "%v", err)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Int is a member that is a whole number from low to high, 0 if it is absent.
func (f *Fields) Int(key string, low, high int) int {
	v := f.Number(key, float64(low), float64(high))
	if v != math.Trunc(v) {
		f.Fault(key, "want a whole number, found %v", v)
		return 0
	}
	return int(v)
}

// Number is a member that is a number from low to high, 0 if it is absent.
func (f *Fields) Number(key string, low, high float64) float64 {
	var v float64
	if !f.into(key, '0', "a number", &v) {
		return 0
	}
	if v < low || v > high {
		f.Fault(key, "want a number from %v to %v, found %s", low, high, short(f.Raw(key)))
		return 0
	}
	return v
}

// into decodes a member whose kind is that of a value that begins with begins.
func (f *Fields) into(key string, begins byte, want string, target any) bool {
	raw := f.Raw(key)
	if raw == nil {
		return false
	}
	if kind := kindOf(raw[0]); kind != kindOf(begins) {
		f.Fault(key, "want %s, found %s", want, kind)
		return false
	}
	if err := json.Unmarshal(raw, target); err != nil {
		f.Fault(key, "want %s: %v", want, err)
		return false
	}
	return true
}

// short is a number's spelling for a message.
func short(raw json.RawMessage) string {
	const most = 24
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "") + "…"
	}
	return string(raw)
}
