package serve

import (
	"context"

	"sluice/internal/workspace"
	"sluice/web"
)

// page returns the page of the daemon's repos. It listens at once if the person's settings say
// where, else when somebody asks for it. One that cannot listen is reported, and holds up nothing.
func (w *Parts) page(ctx context.Context, home string) (*web.Server, error) {
	label, lerr := workspace.PageLabel(home)
	if lerr != nil {
		w.log.Error().Err(lerr).Msg("the page has no name on this machine")
	}
	o := web.Options{Console: w.Console, Home: home, Log: w.log}
	s, err := workspace.Settings(w.Console, "", w.Set)
	if err == nil {
		o.Web = s.Web
	} else if _, own := workspace.Settings(w.Console, "", nil); own == nil {
		return nil, err // a --set is wrong
	} else {
		w.log.Error().Err(err).Msg("the page uses the built-in settings")
	}
	o.Web.Label = label
	page, err := web.New(o)
	if err != nil || s == nil || s.Web.Listen == "" {
		return page, err
	}
	if _, err := page.Start(ctx); err != nil {
		w.log.Error().Err(err).Msg("the page cannot be shown")
	}
	return page, nil
}
