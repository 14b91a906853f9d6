package passkey

import (
	"strings"
	"testing"

	"sluice/internal/approval"
	"sluice/tools/authenticator"
)

// TestWho: a passkey says whose browser it is, at its own page and while it is on the list.
func TestWho(t *testing.T) {
	d, _ := newDesk(t)
	phone := register(t, d, "ann")
	const said = "sluice login 1\n"
	o, err := d.AskWho(said)
	if err != nil || len(o.Allow) != 1 || o.UserVerification != "required" {
		t.Fatalf("%+v %v", o, err)
	}
	if any := d.Site.AskWho(said); any.Allow == nil || len(any.Allow) > 0 || string(any.Challenge) != string(o.Challenge) {
		t.Errorf("%+v", any)
	}
	who, err := d.Who(said, phone.Get(o.Challenge))
	if err != nil || who == nil || who.Name != "ann" {
		t.Fatalf("%+v %v", who, err)
	}
	if who, err := d.Who(said, authenticator.New(t, origin, "sluice.example.org").Get(o.Challenge)); who != nil || err != nil {
		t.Errorf("an unknown one: %+v %v", who, err)
	}
	if any, err := d.Has(nil); !any || err != nil {
		t.Errorf("%v %v", any, err)
	}
	if bob, err := d.Has([]string{"bob"}); bob || err != nil {
		t.Errorf("%v %v", bob, err)
	}
	_, err = d.Who("another text", phone.Get(o.Challenge))
	refused(t, "another text", err, "does not match the text")
	_, err = d.Who(said, phone.Get(approval.Challenge([]byte(said), approval.GateNamespace)))
	refused(t, "for a gate", err, "does not match the text")
	phone.Flags = authenticator.Present
	_, err = d.Who(said, phone.Get(o.Challenge))
	refused(t, "unverified", err, "did not verify who used the passkey")
	phone.Flags |= authenticator.Verified
	phone.Origin = strings.Replace(origin, "8443", "8444", 1)
	_, err = d.Who(said, phone.Get(o.Challenge))
	refused(t, "another port", err, "the passkey signed at https://sluice.example.org:8444")
	phone.Origin = origin

	elsewhere := d
	if elsewhere.Site, err = At("https://sluice.example.org"); err == nil {
		if who, err := elsewhere.Who(said, phone.Get(o.Challenge)); who != nil || err != nil {
			t.Errorf("at another page: %+v %v", who, err)
		}
	}
	if err := (approval.Store{State: d.State}).Revoke(approval.Revoked{Key: who.Key}); err != nil {
		t.Fatal(err)
	}
	if who, err := d.Who(said, phone.Get(o.Challenge)); who != nil || err != nil {
		t.Errorf("a revoked one: %+v %v", who, err)
	}
	if p, err := d.Person(who.Key); p != nil || err != nil {
		t.Errorf("a revoked one: %+v %v", p, err)
	}
}

// TestLoginDecidesNothing: what was signed to log in counts at no gate, whatever the text says.
func TestLoginDecidesNothing(t *testing.T) {
	d, _ := newDesk(t)
	phone := register(t, d, "ann")
	c, err := d.BeginDecision(anAsk())
	if err != nil {
		t.Fatal(err)
	}
	o, err := d.AskWho(c.Text)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.FinishDecision(anAsk(), c.Text, phone.Get(o.Challenge))
	refused(t, "a login", err, "does not match the text")
}

// TestNobodyRegistersTheKeyOfAnother: a registration proves no possession of the key, so who has its code
// and the public key of a person would be taken for that person.
func TestNobodyRegistersTheKeyOfAnother(t *testing.T) {
	d, _ := newDesk(t)
	ann := register(t, d, "ann")
	inv, options, _ := invited(t, d)
	_, err := d.FinishRegistration(inv.Code, ann.Create(options.Challenge))
	refused(t, "a listed one", err, "is listed or revoked already")
	if reg, err := d.Registered(inv.ID); reg != nil || err != nil {
		t.Errorf("it waits for a yes: %+v %v", reg, err)
	}
}
