package importer

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/specs"
)

// format is one that the importer reads.
type format struct {
	name  string
	of    string // whose it is, for people
	seems func(d document) bool
	table func() []construct
	read  func(r *reader, d document)
}

// formats returns the formats in the order in which they are tried.
func formats() []format {
	return []format{
		{"archon", "Archon: YAML with `nodes`", seemsArchon, archonTable, readArchon},
		{"takt", "takt: YAML with `steps` and their `rules`", seemsTakt, taktTable, readTakt},
		{"conductor", "conductor: YAML with `workflow` and `agents`", seemsConductor, conductorTable, readConductor},
		{"gh-aw", "gh-aw: Markdown with front matter", seemsGhaw, ghawTable, readGhaw},
		{"symphony", "symphony: WORKFLOW.md", seemsSymphony, symphonyTable, readSymphony},
	}
}

// Formats returns the names of the formats.
func Formats() (out []string) {
	for _, f := range formats() {
		out = append(out, f.name)
	}
	return out
}

// document is an original: its YAML, and the text below that.
type document struct {
	file  string // below the tree's root
	root  *yaml.Node
	body  string // of Markdown with front matter
	md    bool   // it is Markdown
	above int    // lines above the YAML
}

// reader makes flows of an original.
type reader struct {
	*ledger
	plan     *Plan
	flows    []*flow
	ids      namer             // of workflows
	prompts  map[string]string // the texts of prompt files
	children map[string]*flow  // workflows that others run, by what these call them
	depth    int               // of workflows within one another
}

// Read reads the workflow at path and plans its import. from names the format; "" = it is found by
// the content. Faults of the original are errors with file and line.
func Read(path, from string) (*Plan, error) {
	src, err := openTree(path)
	if err != nil {
		return nil, err
	}
	defer src.root.Close()
	b, err := src.read(src.file, maxSource)
	if err != nil {
		return nil, fault.Failed("name the file of one workflow", "%s: cannot be read: %v", text.Line(path), err)
	}
	d, err := parseDocument(src.file, src.name(src.file), b)
	if err != nil {
		return nil, err
	}
	f, err := choose(src.name(src.file), from, d)
	if err != nil {
		return nil, err
	}
	p := &Plan{Report: Report{File: src.name(src.file), Format: f.name}}
	r := &reader{ledger: newLedger(src, f.table(), &p.Report), plan: p, ids: namer{}, prompts: map[string]string{},
		children: map[string]*flow{}}
	r.from(d.root, d.file, d.above)
	if n := tagged(d.root); n != nil && f.name != "conductor" {
		r.fail(n, "the tag %s is not read here: write the text out", fileTag)
		return nil, r.err
	}
	f.read(r, d)
	if r.err != nil {
		return nil, r.err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return p, nil
}

// parseDocument reads YAML, or Markdown with YAML between two lines of ---.
func parseDocument(file, shown string, b []byte) (document, error) {
	d := document{file: file}
	if strings.EqualFold(path.Ext(file), ".md") {
		d.md = true
		if line := binaryLine(b); line > 0 {
			return d, fault.At(shown, line, 0, "not a text file: a workflow is UTF-8 text")
		}
		front, body, line := frontMatter(string(b))
		if line == 0 {
			e := fault.At(shown, 1, 0, "no front matter: a workflow in Markdown begins with YAML between two lines of ---")
			e.Advice = "name a workflow of another tool: `sluice help import` lists them"
			return d, e
		}
		d.body, b, d.above = body, []byte(front), 1
	}
	root, err := parse(shown, b, d.above)
	d.root = root
	return d, err
}

// frontMatter splits Markdown; line is that of the second ---, 0 if there is none.
func frontMatter(s string) (front, body string, line int) {
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(s, "\ufeff"), "\r\n", "\n"), "\n")
	if strings.TrimRight(lines[0], " \t") != "---" {
		return "", "", 0
	}
	for i, l := range lines[1:] {
		if strings.TrimRight(l, " \t") == "---" {
			return strings.Join(lines[1:i+1], "\n") + "\n", strings.Join(lines[i+2:], "\n"), i + 2
		}
	}
	return "", "", 0
}

// choose returns the format that is named, or the first that the document seems to be of.
func choose(shown, from string, d document) (format, error) {
	all := formats()
	var says []string
	for _, f := range all {
		if from == f.name || from == "" && f.seems(d) {
			return f, nil
		}
		says = append(says, f.name+" ("+f.of+")")
	}
	if from != "" {
		return format{}, fault.Misused("one of "+strings.Join(Formats(), ", ")+text.DidYouMean(from, Formats()),
			"--from: no format %q", text.Line(from))
	}
	if get(d.root, "steps") != nil && isMap(get(d.root, "workflow")) {
		return format{}, &fault.Error{File: shown, Line: 1, Cause: "this is a spec of sluice already",
			Advice: "`sluice validate` checks it"}
	}
	return format{}, fault.Failed("the formats are "+strings.Join(says, ", ")+"; --from names one",
		"%s: not a workflow of a known format", shown)
}

// tagged returns a node with the tag of a file; nil if there is none.
func tagged(n *yaml.Node) *yaml.Node {
	if n.Tag == fileTag {
		return n
	}
	for _, c := range n.Content {
		if t := tagged(c); t != nil {
			return t
		}
	}
	return nil
}

// begin makes the flow of a document; head is where its name is, of names its format, and more says what else the
// reader of the spec needs to know.
func (r *reader) begin(d document, head *yaml.Node, of, more string) *flow {
	name := cmp.Or(str(get(head, "name")), strings.TrimSuffix(path.Base(d.file), path.Ext(d.file)))
	words := name
	if d.md { // a title
		words = strings.ToLower(name)
	}
	f := &flow{id: r.ids.id(words), name: name, description: str(get(head, "description")), workspace: "run"}
	f.notes = []string{"imported from " + path.Base(d.file) + " (" + of + "). Where this spec says less than the " +
		"original, or something else, a comment says so. " + more}
	r.flows = append(r.flows, f)
	return f
}

// finish makes the files of the flows, and has our loader look at each spec.
func (r *reader) finish() error {
	p := r.plan
	r.shareStubs()
	texts := map[string][]byte{}
	for _, f := range r.flows {
		b, err := f.spec()
		if err != nil {
			return err
		}
		texts[f.id] = b
		p.put(path.Join(layout.SpecsDir, f.id+".yaml"), b)
		stubs, err := f.stubScript()
		if err != nil {
			return err
		}
		if stubs != nil {
			p.put(path.Join(layout.StubsDir, f.id+".yaml"), stubs)
		}
	}
	p.Report.Workflow, p.Report.Vars, p.Report.Faults = r.flows[0].id, []string{}, []Fault{}
	for i, f := range r.flows {
		spec, faults := specs.LoadWith(path.Join(layout.SpecsDir, f.id+".yaml"), texts[f.id], texts)
		for _, x := range faults {
			p.Report.Faults = append(p.Report.Faults, Fault{x.File, x.Line, x.Col, x.Message})
		}
		if i > 0 || spec == nil {
			continue
		}
		for _, v := range spec.Vars {
			if v.Required {
				p.Report.Vars = append(p.Report.Vars, v.Name)
			}
		}
	}
	slices.SortStableFunc(p.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	for _, f := range p.files {
		p.Report.Files = append(p.Report.Files, f.path)
	}
	p.Report.count()
	return nil
}

// shareStubs has the script of a workflow name the stand-ins of those that it runs, whose own scripts count
// only when they are run by themselves. Of steps with one name the first counts.
func (r *reader) shareStubs() {
	first := r.flows[0]
	for _, f := range r.flows[1:] {
		for _, s := range f.stubs {
			if first.step(s.step) == nil && !slices.ContainsFunc(first.stubs, func(o stubbed) bool { return o.step == s.step }) {
				first.stubs = append(first.stubs, s)
			}
		}
	}
}

// prompt writes words of the original as a prompt file of the flow and returns its path.
func (r *reader) prompt(f *flow, name, words string) string {
	file := path.Join(layout.WorkflowDir, "prompts", f.id, slug(name, 60)+".md")
	if old, ok := r.prompts[strings.ToLower(file)]; ok && old != words {
		file = path.Join(layout.WorkflowDir, "prompts", f.id, r.ids.id(name)+"-2.md")
	}
	r.prompts[strings.ToLower(file)] = words
	r.plan.put(file, []byte(strings.TrimRight(words, "\n")+"\n"))
	return file
}
