package web

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/url"

	"sluice/daemon"
	"sluice/internal/fault"
	"sluice/internal/form"
	"sluice/internal/text"
	"sluice/internal/workflows"
	"sluice/specs"
	"sluice/specs/graph"
)

// startPage lists what can be started.
type startPage struct {
	Items  []workflowItem
	Faults []string
}

type workflowItem struct {
	Repo, ID, Name, URL string
	Fault               string
	Strip               template.HTML // specs/graph made it
}

func (s *Server) startList(r *http.Request) (view, error) {
	known, err := s.repos.all(r.Context())
	if err != nil {
		return view{}, err
	}
	var p startPage
	for _, at := range known {
		found, err := specs.Find(at.Root)
		if err != nil {
			p.Faults = append(p.Faults, at.Name+": "+text.Message(err.Error()))
			continue
		}
		for _, f := range found {
			item := workflowItem{Repo: at.Name, ID: workflows.ID(f)}
			item.URL = startURL(at.Name, item.ID)
			if spec, faults := specs.LoadFile(f); len(faults) > 0 {
				item.Fault = faults[0].Error()
			} else {
				item.Name = spec.Name
				o := graph.Options{Fragment: true, Prefix: at.Name + "-" + item.ID + "-"}
				item.Strip = template.HTML(graph.Strip(spec, nil, o))
			}
			p.Items = append(p.Items, item)
		}
	}
	return view{title: "Start a run", nav: "start", body: "start", data: p}, nil
}

func startURL(repo, workflow string) string {
	return "/start/" + url.PathEscape(repo) + "/" + url.PathEscape(workflow)
}

// formPage is the form that starts a workflow.
type formPage struct {
	Repo, ID, Name, URL string
	Graph               template.HTML // specs/graph made it
	Vars                []form.Field  // the default is what was written, if anything was
	Served              bool
	Stub, Beside        bool
	Failed              string
}

func (s *Server) startForm(r *http.Request) (v view, err error) {
	p, _, err := s.formOf(r)
	return view{title: "Start " + r.PathValue("workflow"), nav: "start", body: "startform", data: p}, err
}

func (s *Server) formOf(r *http.Request) (*formPage, repo, error) {
	at, err := s.repos.named(r.Context(), r.PathValue("repo"))
	if err != nil {
		return nil, at, err
	}
	id := r.PathValue("workflow")
	file, err := workflows.File(at.Workspace, id)
	if err != nil {
		return nil, at, err
	}
	spec, faults := specs.LoadFile(file)
	if len(faults) > 0 {
		return nil, at, fault.New("fix the spec; `sluice validate` checks it", "%s", faults[0].Error())
	}
	p := &formPage{Repo: at.Name, ID: id, Name: spec.Name, URL: startURL(at.Name, id),
		Graph: template.HTML(graph.SVG(spec, nil, graph.Options{Fragment: true}))}
	sv, err := at.Serving(r.Context())
	if err == nil && sv != nil {
		p.Served = true
		sv.Close()
	}
	for _, x := range spec.Vars {
		f := form.Field{Name: x.Name, About: x.Description, Required: x.Required}
		if x.Default != nil {
			f.Default = fmt.Sprint(x.Default)
		}
		for _, c := range x.OneOf {
			f.Choices = append(f.Choices, fmt.Sprint(c))
		}
		p.Vars = append(p.Vars, f)
	}
	return p, at, nil
}

// startRun starts a run with the vars of a form.
func (s *Server) startRun(r *http.Request) (to string, v *view, err error) {
	p, at, err := s.formOf(r)
	if err != nil {
		return "", nil, err
	}
	f := r.PostForm
	want := workflows.Wanted{Workflow: p.ID, Parallel: f.Get("beside") != ""}
	if p.Stub, p.Beside = f.Get("stub") != "", want.Parallel; p.Stub {
		want.Script = workflows.UsualScript
	}
	for i, x := range p.Vars {
		value := f.Get("var." + x.Name)
		p.Vars[i].Default = value
		if value != "" {
			want.Vars = append(want.Vars, x.Name+"="+value)
		}
	}
	run, why := s.order(r, at, want)
	if why != "" {
		p.Failed = why
		return "", &view{title: "Start " + p.ID, nav: "start", body: "startform", data: p}, nil
	}
	return runURL(at.Name, run), nil, nil
}

// order starts a run, and returns its id or why there is none.
func (s *Server) order(r *http.Request, at repo, want workflows.Wanted) (run, why string) {
	var said bytes.Buffer
	con := *s.con
	con.Out, con.Err, con.JSON = &said, &said, false
	ev, err := workflows.Request(r.Context(), &con, at.Workspace, want)
	var done daemon.Done
	if err == nil {
		done, err = at.Do(r.Context(), ev, s.passkeys.via(r))
	}
	if err == nil && (done.Ignored != "" || done.Run == "") {
		err = fmt.Errorf("no run was started: %s", done.Ignored)
	}
	if err != nil {
		return "", text.Message(said.String() + err.Error())
	}
	return done.Run, ""
}
