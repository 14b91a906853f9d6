package main

import (
	"context"

	"sluice/deploy"
	"sluice/internal/fault"
	"sluice/internal/show"
)

func (a *app) serviceStatus(ctx context.Context, f serviceFlags) error {
	opt, err := f.options(&a.Console)
	if err != nil {
		return err
	}
	s, err := deploy.OpenOwn(opt)
	if err != nil {
		return err
	}
	st, err := s.Look(ctx, func() (string, error) { return f.home(&a.Console) })
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.Document(st)
	} else {
		show.Service(&a.Console, st, version)
	}
	if err == nil && st.State != deploy.StateRunning {
		err = fault.Exit(fault.ExitFailed)
	}
	return err
}
