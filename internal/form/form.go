// Package form asks a person for the properties of an answer, wherever a gate is decided: one after the
// other in a terminal, all at once on a page.
package form

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"sluice/internal/schema"
	"sluice/internal/text"
)

// partMost is how much of a text of the schema is shown, in characters.
const partMost = 200

// Form is an answer that is being given.
type Form struct {
	by    *schema.Schema
	all   []schema.Property
	at    int
	given map[string]any
}

// New begins a form by a schema.
func New(source json.RawMessage) (*Form, error) {
	s, err := schema.Compile(source)
	if err != nil {
		return nil, err
	}
	return &Form{by: s, all: s.Properties(), given: map[string]any{}}, nil
}

// Done reports whether all was asked.
func (f *Form) Done() bool { return f.at == len(f.all) }

// Question asks for the property that is next: what it is, what it may be, and in brackets what Enter takes.
func (f *Form) Question() string {
	if f.Done() {
		return ""
	}
	return question(f.all[f.at])
}

// Questions are all that are asked.
func (f *Form) Questions() (out []string) {
	for _, p := range f.all {
		out = append(out, question(p))
	}
	return out
}

// Field is what a page has to ask for a property.
type Field struct {
	Name, About, Want string
	Required          bool
	Default           string   // what it has unless a person changes it
	Choices           []string // all that it may be; none = anything that is as wanted
}

// Fields are the same as Questions, for a page.
func (f *Form) Fields() (out []Field) {
	for _, p := range f.all {
		x := Field{Name: clean(p.Name), About: clean(cmp.Or(p.Title, p.About)), Want: clean(p.Want()), Required: p.Required}
		if p.Title != "" && p.About != "" {
			x.About += ": " + clean(p.About)
		}
		if p.Default != nil {
			x.Default = schema.Shown(*p.Default)
		}
		for _, c := range p.Options() {
			x.Choices = append(x.Choices, schema.Shown(c))
		}
		out = append(out, x)
	}
	return out
}

func question(p schema.Property) string {
	out := clean(p.Name)
	if p.Title != "" {
		out += ", " + clean(p.Title)
	}
	if p.About != "" {
		out += ": " + clean(p.About)
	}
	out += " (" + clean(p.Want()) + ")"
	switch {
	case p.Default != nil:
		out += " [" + clean(schema.Shown(*p.Default)) + "]"
	case !p.Required:
		out += " [left out]"
	}
	return out
}

// Take takes a line as the value of the property that was asked for, an empty one as its default;
// it says what is wrong with it.
func (f *Form) Take(line string) (why string) {
	p := f.all[f.at]
	line = strings.TrimSpace(line)
	switch {
	case line == "" && p.Default == nil && p.Required:
		return clean(p.Name) + " is required: want " + clean(p.Want())
	case line != "":
		v, err := p.Read(line)
		if err != nil {
			return clean(err.Error())
		}
		f.given[p.Name] = v
	}
	f.at++
	return ""
}

// Answer is what was given, with the defaults of what was not.
func (f *Form) Answer() (json.RawMessage, error) {
	raw, err := schema.Encode(f.given, schema.MaxBytes)
	if err != nil {
		return nil, err
	}
	return f.by.Person(raw)
}

// At tells the questions apart.
func (f *Form) At() string { return fmt.Sprint("property ", f.at) }

func clean(s string) string { return text.Clean(s, partMost) }

// shownMost is how many properties of an answer are named.
const shownMost = 12

// Shown is an answer in words: name=web, replicas=3.
func Shown(answer json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(answer, &members) != nil || len(members) == 0 {
		return ""
	}
	var out []string
	d := json.NewDecoder(strings.NewReader(string(answer)))
	_, _ = d.Token() // its brace: what follows was read above
	for d.More() {
		name, err := d.Token()
		var v json.RawMessage
		if err != nil || d.Decode(&v) != nil {
			break
		}
		if len(out) == shownMost {
			out = append(out, fmt.Sprintf("and %d more", len(members)-shownMost))
			break
		}
		var value string
		if json.Unmarshal(v, &value) != nil || value == "" {
			value = string(v)
		}
		out = append(out, text.Clean(fmt.Sprint(name), 60)+"="+text.Clean(value, 60))
	}
	return strings.Join(out, ", ")
}
