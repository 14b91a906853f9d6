package doctor

import (
	"context"

	"sluice/agents"
	"sluice/internal/console"
	"sluice/internal/settings"
	"sluice/internal/text"
	"sluice/notify"
)

// Notify checks each way in which notices reach a person. helper is the command that shows them on the desktop.
func Notify(ctx context.Context, con *console.Console, root string, n settings.Notify, helper []string) []Check {
	var out []Check
	if len(n.Command) > 0 {
		if _, err := agents.LookUp(n.Command[0], con.Env, root); err != nil {
			out = append(out, Broken("notify", "name an existing command in notify.command", "%s: not found",
				text.Line(n.Command[0])))
		} else {
			out = append(out, Fine("notify", "by %s; `sluice notify TEXT` tries it", text.Line(n.Command[0])))
		}
	}
	if n.Webhook.URL != "" {
		out = append(out, checkWebhook(con, n.Webhook))
	}
	switch {
	case !n.Desktop:
	case HasDesktop(con):
		out = append(out, checkDesktop(ctx, con, helper))
	case len(out) > 0:
		out = append(out, Fine("notify", "not on the desktop: nobody is logged in at one here"))
	}
	if len(out) == 0 {
		return []Check{Warned("notify",
			"set notify.command or notify.webhook in your own settings, or look at `sluice inbox` from time to time",
			"no desktop session, no notify.command and no notify.webhook: notices only reach the log")}
	}
	return out
}

// checkWebhook checks what the webhook needs, without calling it.
func checkWebhook(con *console.Console, w settings.Webhook) Check {
	missing := w.Hook().Missing(func(name string) (string, bool) { v := con.Getenv(name); return v, v != "" })
	if len(missing) > 0 {
		return Broken("notify", "set it where sluice is started, such as in the service's environment file",
			"by webhook: the environment has no %s", text.Line(missing[0]))
	}
	return Fine("notify", "by webhook; `sluice notify TEXT` tries it")
}

// checkDesktop asks who shows notices.
func checkDesktop(ctx context.Context, con *console.Console, helper []string) Check {
	desk := notify.NewDesk(helper, con.Env)
	name, buttons, err := desk.Server(ctx)
	_ = desk.Close() // it returns none
	switch {
	case err != nil:
		return Warned("notify",
			"start a notification service (dunst, mako, or that of your desktop), or set notify.command or notify.webhook",
			"no program shows notices on the desktop: %s", text.Line(err.Error()))
	case buttons:
		return Fine("notify", "on the desktop, with buttons (%s); `sluice notify TEXT` tries it", text.Line(name))
	}
	return Fine("notify", "on the desktop (%s shows no buttons); `sluice notify TEXT` tries it", text.Line(name))
}
