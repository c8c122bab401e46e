package webhook

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

const (
	// maxDamage bounds the damaged content in one message.
	maxDamage = 50
	// maxDamagePages bounds how many pages of the list of damage are read. If a disk fails, the
	// beginning is enough.
	maxDamagePages = 10
)

// readDamage returns the known damage in the order in which it was found.
func (d *Deliverer) readDamage(ctx context.Context) ([]registry.Damage, error) {
	if d.Damages == nil {
		return nil, nil
	}
	var found []registry.Damage
	for after, pages := "", 0; pages < maxDamagePages; pages++ {
		page, err := d.Damages.List(ctx, after, registry.DefaultPage)
		if err != nil {
			return nil, err
		}
		for _, known := range page {
			found = append(found, known.Document)
		}
		if len(page) < registry.DefaultPage {
			break
		}
		after = page[len(page)-1].Name
	}
	slices.SortFunc(found, registry.Damage.CompareFound)
	return found, nil
}

// tellDamage delivers damage that a webhook has not received yet, in one message.
func (d *Deliverer) tellDamage(ctx context.Context, hook registry.Named[registry.Webhook], state registry.Delivery) error {
	var untold []registry.Damage
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
		state = registry.Delivery{Delivered: state.Delivered, Damage: registry.DamageRef{Found: last.Found, Digest: last.Digest}}
	}
	return d.save(context.WithoutCancel(ctx), hook.Name, state)
}

// ended reports whether the service is stopping.
func ended(ctx context.Context) bool { return ctx.Err() != nil }
