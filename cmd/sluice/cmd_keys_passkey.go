package main

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"sluice/internal/approval/passkey"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/workspace"
)

// passkeyPace is how often the command checks for the registration.
const passkeyPace = 300 * time.Millisecond

// keysAddPasskey has a phone register a passkey at the page, and adds it once the person has compared
// fingerprints.
func keysAddPasskey(ctx context.Context, con *console.Console, p *workspace.Workspace, page string,
	names []string) (err error) {
	if con.Yes || !con.Interactive() {
		return fault.Misused("run it in a terminal, without --yes",
			"you must compare the fingerprint with the one on the phone before a passkey is added")
	}
	if page == "" {
		if page, err = pageAddress(ctx, con); err != nil {
			return err
		}
	}
	site, err := passkey.At(page)
	if err != nil {
		return fault.Misused("give one such as https://sluice.example.org", "--url: %v", err)
	}
	if err := workspace.MakeState(p.State); err != nil {
		return err
	}
	desk := passkey.Desk{Repo: p.ID, State: p.State, Site: site, Now: con.Now}
	inv, err := desk.Invite(names)
	if err != nil {
		return err
	}
	defer func() {
		if left := desk.Withdraw(inv.ID); err == nil {
			err = left
		}
	}()
	invite(con, site, inv, names[0])
	reg, err := awaitPasskey(ctx, desk, inv.ID)
	if err != nil {
		return err
	}
	con.Print("%s was registered for %s (%s)", reg.Key, strings.Join(reg.Names, ", "), site.ID())
	yes, err := con.Ask("Does the " + device(site) + " show the same fingerprint? Only then add it.")
	if err != nil || !yes {
		con.Note("it was not added, and the link is void")
		return errors.Join(err, notDone(err))
	}
	if err := desk.Confirm(reg); err != nil {
		return err
	}
	con.Print("%s counts now as %s (passkey of %s)", reg.Key, strings.Join(reg.Names, ", "), site.ID())
	return nil
}

// invite prints the link, with its QR code where a phone can open it.
func invite(con *console.Console, site passkey.Site, inv passkey.Invitation, name string) {
	minutes := int(passkey.Life / time.Minute)
	if device(site) == "browser" {
		con.Print("Open this link in %s's browser on this machine. It works once, within %d minutes:", name, minutes)
		con.Print("%s", inv.Link)
		con.Note("For a phone, set web.name in your settings first.")
		con.Print("Waiting for the browser …")
		return
	}
	con.Print("Open this link on the phone of %s. It works once, within %d minutes:", name, minutes)
	con.Print("%s", inv.Link)
	con.PrintQR(inv.Link)
	con.Print("Waiting for the phone …")
}

// device names where a passkey of the page is created.
func device(site passkey.Site) string {
	if strings.HasSuffix(site.ID(), "localhost") {
		return "browser"
	}
	return "phone"
}

// pageAddress returns where the page is, at which passkeys are created.
func pageAddress(ctx context.Context, con *console.Console) (string, error) {
	link, err := pageLink(ctx, con)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	return u.Scheme + "://" + u.Host, nil // without its code, which nobody is shown
}

// awaitPasskey waits until a passkey is registered for the invitation, or the invitation is void.
func awaitPasskey(ctx context.Context, desk passkey.Desk, id string) (*passkey.Registered, error) {
	for {
		reg, err := desk.Registered(id)
		if err != nil || reg != nil {
			return reg, err
		}
		if !health.Wait(ctx, passkeyPace) {
			return nil, context.Canceled
		}
	}
}
