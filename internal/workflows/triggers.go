package workflows

import (
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/gates"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/strictjson"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/specs"
)

// Armable reads a workflow whose triggers a person arms: its text with all that it names, no var
// given.
func Armable(p *workspace.Workspace, workflow string) (ev engine.ArmRequested, file string, err error) {
	file, src, err := sourceOf(p, workflow)
	if err != nil {
		return ev, file, err
	}
	ev.Source, err = pinned(p, file, src, nil)
	ev.Workflow, ev.Digest = workflow, specs.Digest([]byte(ev.Source))
	return ev, file, err
}

// Fired reads a workflow for a run that a trigger starts with vars. armed is the digest of the spec
// as a person would arm it now.
func Fired(p *workspace.Workspace, workflow string, vars map[string]any) (ev engine.RunRequested, armed string,
	err error) {
	file, src, err := sourceOf(p, workflow)
	if err != nil {
		return ev, "", err
	}
	as, err := pinned(p, file, src, nil)
	if err != nil {
		return ev, "", err
	}
	source, err := pinned(p, file, src, vars)
	return engine.RunRequested{Workflow: workflow, Source: source, Digest: specs.Digest([]byte(source)),
		File: specs.Digest(src), Vars: vars, After: layout.Newest(p.Root, workflow)}, specs.Digest([]byte(as)), err
}

func sourceOf(p *workspace.Workspace, workflow string) (file string, src []byte, err error) {
	if file, err = File(p, workflow); err != nil {
		return file, nil, err
	}
	src, err = os.ReadFile(file)
	return file, src, err
}

func pinned(p *workspace.Workspace, file string, src []byte, vars map[string]any) (string, error) {
	out, bad := specs.Pin(p.Root, file, src, vars)
	if len(bad) > 0 {
		bad[0].File = layout.ShortPath(bad[0].File)
		return "", fault.Failed("fix the spec; `sluice validate` checks it again", "%s%s", bad[0],
			text.More(len(bad)-1, "fault"))
	}
	return string(out), nil
}

// MaxEvent is the largest JSON of a push, an issue or a webhook, in bytes.
const MaxEvent = 256 << 10

// ByHand is a firing that a person makes.
type ByHand struct {
	Workflow, Trigger string
	File              string // of files
	Event             []byte // of push, issue and webhook: JSON
}

// FireByHand makes the event that starts a run as the trigger would. Its key is the time.
func FireByHand(con *console.Console, p *workspace.Workspace, w ByHand) (ev engine.RunRequested, err error) {
	file, err := File(p, w.Workflow)
	if err != nil {
		return ev, err
	}
	spec, err := Load(con, file)
	if err != nil {
		return ev, err
	}
	of := spec.On.Trigger(w.Trigger)
	if of == nil {
		var names []string
		if spec.On != nil {
			for _, t := range spec.On.Triggers {
				names = append(names, t.Name)
			}
		}
		advice := "it has no `on:`"
		if len(names) > 0 {
			advice = "it has " + strings.Join(names, ", ")
		}
		return ev, fault.Failed(advice, "workflow %s has no trigger %s", w.Workflow, text.Line(w.Trigger))
	}
	values, err := w.values(of, con.Now())
	if err != nil {
		return ev, err
	}
	vars, err := spec.FiringVars(of, values)
	if err != nil {
		return ev, fault.Failed("give the event another value, or change `with` in "+layout.ShortPath(file), "%w", err)
	}
	ev, _, err = Fired(p, w.Workflow, vars)
	ev.Fired = &engine.FiredBy{Trigger: of.Name, Key: "by hand " + con.Now().UTC().Format(time.RFC3339)}
	return ev, err
}

// values returns what expressions see of the firing.
func (w ByHand) values(of *engine.Trigger, now time.Time) (map[string]any, error) {
	switch of.Kind {
	case engine.OnSchedule:
		return map[string]any{"time": now.UTC().Format("2006-01-02T15:04Z")}, nil
	case engine.OnFiles:
		if w.File == "" {
			return nil, fault.Misused("--file FILE", "which file? %s fires for one", of.Name)
		}
		file := path.Clean(w.File)
		if !slices.ContainsFunc(of.Globs, func(g string) bool { return gates.Matches(g, file) }) {
			return nil, fault.Misused("it fires for "+strings.Join(of.Globs, ", "), "--file %s: %s does not fire for it",
				text.Line(file), of.Name)
		}
		return map[string]any{"file": file}, nil
	}
	name := of.Kind
	if name == engine.OnWebhook {
		name = "event"
	}
	if len(w.Event) == 0 {
		return nil, fault.Misused("--event FILE, with "+name+" as JSON", "which %s?", name)
	}
	var value map[string]any
	err := strictjson.Object(w.Event, MaxEvent)
	if err == nil {
		err = json.Unmarshal(w.Event, &value)
	}
	if err != nil {
		return nil, fault.Misused("--event FILE, with "+name+" as a JSON object", "%s: %w", name, err)
	}
	return map[string]any{name: value}, nil
}
