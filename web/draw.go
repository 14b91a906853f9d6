package web

import (
	"html/template"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/render"
	"sluice/specs/graph"
)

// drawn returns the picture of a run. A node leads to its gate, or to the transcript of its newest
// attempt.
func drawn(spec *engine.Spec, r daemon.RunStatus, url string, now time.Time) template.HTML {
	o := pictureOf(r, now)
	link := map[string]string{}
	for _, st := range r.Steps {
		if st.Attempt > 0 {
			link[st.ID] = attemptURL(url, st.ID, st.Attempt)
		}
		for _, g := range st.Gates {
			if g.Round > 0 {
				link[g.ID] = url + "/g/" + g.ID
			}
		}
	}
	o.Link = func(id string) string { return link[id] }
	return template.HTML(graph.SVG(spec, r.States(), o))
}

// strip returns a run in one row, for lists.
func strip(spec *engine.Spec, r daemon.RunStatus, repo string, now time.Time) template.HTML {
	o := pictureOf(r, now)
	o.Prefix = repo + "-" + r.ID + "-"
	return template.HTML(graph.Strip(spec, r.States(), o))
}

func pictureOf(r daemon.RunStatus, now time.Time) graph.Options {
	o := graph.Options{Fragment: true}
	o.Notes, o.Taken = render.PictureNotes(r, now)
	return o
}
