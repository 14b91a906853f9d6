package main

import (
	"context"
	"os"

	"sluice/agents"
	"sluice/internal/doctor"
	"sluice/internal/settings"
	"sluice/notify"
)

// checkNotify says by which ways notices reach a person.
func (a *app) checkNotify(ctx context.Context, root string) []doctor.Check {
	s, err := a.settingsOf(root, nil)
	if err != nil {
		return []doctor.Check{doctor.Warned("notify", "mend the settings first", "not known: the settings cannot be read")}
	}
	var out []doctor.Check
	n := s.Notify
	if len(n.Command) > 0 {
		if _, err := agents.LookUp(n.Command[0], a.Env, root); err != nil {
			out = append(out, doctor.Broken("notify", "name a command that is there in notify.command", "%s: not found", clean(n.Command[0])))
		} else {
			out = append(out, doctor.Fine("notify", "by %s; `sluice notify TEXT` tries it", clean(n.Command[0])))
		}
	}
	if n.Webhook.URL != "" {
		out = append(out, a.checkWebhook(n.Webhook))
	}
	others := len(out) > 0
	switch {
	case !n.Desktop:
	case doctor.HasDesktop(&a.Console):
		out = append(out, a.checkDesktop(ctx))
	case others:
		out = append(out, doctor.Fine("notify", "not on the desktop: nobody is logged in at one here"))
	}
	if len(out) == 0 {
		return []doctor.Check{doctor.Warned("notify", "set notify.command or notify.webhook in your own settings, or look at `sluice inbox` from time to time", "no desktop session, no notify.command and no notify.webhook: notices only reach the log")}
	}
	return out
}

// checkWebhook looks whether the webhook can be called, and calls nothing.
func (a *app) checkWebhook(w settings.Webhook) doctor.Check {
	missing := w.Hook().Missing(func(name string) (string, bool) { v := a.Getenv(name); return v, v != "" })
	if len(missing) > 0 {
		return doctor.Broken("notify", "set it where sluice is started, a service's environment file for one", "by webhook: the environment has no %s", clean(missing[0]))
	}
	return doctor.Fine("notify", "by webhook; `sluice notify TEXT` tries it")
}

// checkDesktop asks who shows notices.
func (a *app) checkDesktop(ctx context.Context) doctor.Check {
	self, err := os.Executable()
	if err != nil {
		return doctor.Warned("notify", "", "not known: %s", err)
	}
	desk := notify.NewDesk([]string{self, notifyCommand}, a.Env)
	name, buttons, err := desk.Server(ctx)
	_ = desk.Close() // it gives none
	switch {
	case err != nil:
		return doctor.Warned("notify", "start a notification service (dunst, mako, or that of your desktop), or set notify.command or notify.webhook", "on the desktop nobody shows notices: %s", clean(err.Error()))
	case buttons:
		return doctor.Fine("notify", "on the desktop, with buttons (%s); `sluice notify TEXT` tries it", clean(name))
	}
	return doctor.Fine("notify", "on the desktop (%s shows no buttons); `sluice notify TEXT` tries it", clean(name))
}
