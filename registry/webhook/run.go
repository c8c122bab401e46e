package webhook

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// leaseName and leaseTime belong to the lease that selects one of several replicas. A turn is
// shorter than leaseTime.
const (
	leaseName = "webhooks"
	leaseTime = time.Minute
)

// atOnce is how many webhooks are served at the same time.
const atOnce = 8

// Run delivers until ctx ends. It logs errors of the database and continues.
func (d *Deliverer) Run(ctx context.Context) {
	ticker := time.NewTicker(d.Interval)
	defer ticker.Stop()
	defer d.stop(ctx)
	for {
		if err := d.Round(ctx); err != nil && ctx.Err() == nil {
			d.Logger.ErrorContext(ctx, "webhooks", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// stop releases the lease, so that another replica can continue at once.
func (d *Deliverer) stop(ctx context.Context) {
	d.client.CloseIdleConnections()
	if d.until.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer cancel()
	if err := d.Leases.ReleaseLease(ctx, leaseName, d.Holder); err != nil {
		d.Logger.ErrorContext(ctx, "webhooks", "error", err)
	}
}

// Round serves every webhook once, if this process has or gets the lease. It is not safe for
// concurrent use.
func (d *Deliverer) Round(ctx context.Context) error {
	if err := d.readClock(ctx); err != nil {
		return err
	}
	mine, err := d.lead(ctx)
	if err != nil || !mine {
		return err
	}
	if d.damage, err = d.readDamage(ctx); err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for after := ""; ; {
		page, err := d.Webhooks.List(ctx, after, storage.DefaultPage)
		if err != nil {
			return waitFor(&group, err)
		}
		for _, hook := range page {
			group.Go(func() error { return d.turn(ctx, hook) })
		}
		if len(page) < storage.DefaultPage {
			return group.Wait()
		}
		after = page[len(page)-1].Name
		if mine, err := d.lead(ctx); err != nil || !mine {
			return waitFor(&group, err)
		}
	}
}

// waitFor waits for all turns to end before it returns an error.
func waitFor(group *errgroup.Group, err error) error {
	if failed := group.Wait(); err == nil {
		return failed
	}
	return err
}

// readClock reads the clock of the catalog. The times of the next attempts use it, so that
// another replica can take over.
func (d *Deliverer) readClock(ctx context.Context) error {
	now, err := d.Clock.CatalogTime(ctx)
	if err == nil {
		d.read, d.readAt = now, time.Now()
	}
	return err
}

// lead takes the lease, or renews it after half of leaseTime.
func (d *Deliverer) lead(ctx context.Context) (bool, error) {
	now := d.now()
	if d.until.Sub(now) > leaseTime/2 {
		return true, nil
	}
	mine, err := d.Leases.AcquireLease(ctx, leaseName, d.Holder, leaseTime)
	d.until = time.Time{}
	if mine && err == nil {
		d.until = now.Add(leaseTime)
	}
	return mine, err
}

// turn delivers to one webhook what it has not received yet.
func (d *Deliverer) turn(ctx context.Context, hook registry.Named[storage.Webhook]) error {
	state, err := d.Deliveries.Get(ctx, hook.Name)
	if registry.HasCode(err, registry.CodeNotFound) {
		state, err = storage.Delivery{Delivered: hook.Document.After}, nil
	}
	if err != nil {
		return err
	}
	if !state.Active(hook.Document) {
		return nil
	}
	if !state.Suspended.IsZero() { // it was resumed
		state = storage.Delivery{Delivered: state.Delivered, Damage: state.Damage}
	}
	if wait := state.NextAttempt.Sub(d.now()); 0 < wait && wait <= longestWait { // a longer wait means that the clock was set back
		return nil
	}
	state, arrived, err := d.catchUp(ctx, hook, state)
	if err != nil || !arrived {
		return err
	}
	return d.tellDamage(ctx, hook, state)
}
