package webhook

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// maxDamage bounds the damaged content in one message.
	maxDamage = 50
	// maxDamagePages bounds how many pages of the list of damage are read. If a disk fails, the
	// beginning is enough.
	maxDamagePages = 10
)

// readDamage returns the known damage in the order in which it was found.
func (d *Deliverer) readDamage(ctx context.Context) ([]storage.Damage, error) {
	if d.Damages == nil {
		return nil, nil
	}
	var found []storage.Damage
	for after, pages := "", 0; pages < maxDamagePages; pages++ {
		page, err := d.Damages.List(ctx, after, storage.DefaultPage)
		if err != nil {
			return nil, err
		}
		for _, known := range page {
			found = append(found, known.Document)
		}
		if len(page) < storage.DefaultPage {
			break
		}
		after = page[len(page)-1].Name
	}
	slices.SortFunc(found, storage.Damage.CompareFound)
	return found, nil
}

// tellDamage delivers damage that a webhook has not received yet, in one message.
func (d *Deliverer) tellDamage(ctx context.Context, hook registry.Named[storage.Webhook], state storage.Delivery) error {
	var untold []storage.Damage
	for _, damage := range d.damage {
		if state.Damage.Before(damage) && hook.Document.WantsDamage(damage) && len(untold) < maxDamage {
			untold = append(untold, damage)
		}
	}
	if len(untold) == 0 || ended(ctx) {
		return nil
	}
	m, err := newDamageMessage(hook.Name, untold)
	if err == nil {
		err = d.send(ctx, hook, m)
	}
	if ended(ctx) { // it is delivered after the next start
		return nil
	}
	switch {
	case err != nil:
		state = d.failed(m.id, state, err)
	default:
		last := untold[len(untold)-1]
		state = storage.Delivery{Delivered: state.Delivered, Damage: storage.DamageRef{Found: last.Found, Digest: last.Digest}}
	}
	return d.save(context.WithoutCancel(ctx), hook.Name, state)
}

// ended reports whether the service is stopping.
func ended(ctx context.Context) bool { return ctx.Err() != nil }
