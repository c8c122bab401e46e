package approver

import (
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// Change is what is restricted, and what no longer is.
type Change struct {
	Environment string // empty: every environment
	Reason      string
	Add, Lift   []evidence.Restriction // without reason, time and approver
	// Again signs the list even if nothing changes, so that another key vouches for it.
	Again bool
}

// tries is how often a list is signed again because another one came first.
const tries = 5

// Change signs the next list of each environment and puts it in force. What is in force already is
// not added again, and what is in force in some environments is lifted there. It tries every
// environment, and returns what is in force in those in which it succeeded, with the errors of the
// others. Errors: CodeInvalid for nothing to do, or without a reason; CodeNotFound for something to
// lift that is in force nowhere; CodeUnavailable without an approver's key; CodeTrust where the
// approver is not trusted for the whole environment.
func (r Restricter) Change(ctx context.Context, c Change) ([]Restricted, error) {
	if len(c.Add)+len(c.Lift) == 0 && !c.Again {
		return nil, registry.Errorf(registry.CodeInvalid, "restrict: want a source, calibration data, a toolchain or an operator library")
	}
	if c.Reason == "" {
		return nil, registry.Errorf(registry.CodeInvalid, "restrict: want a reason, which stays in the list")
	}
	names, err := r.names(c.Environment)
	if err != nil {
		return nil, err
	}
	if err := r.mayLift(ctx, names, c); err != nil {
		return nil, err
	}
	var all []Restricted
	var failed []error
	for _, name := range names {
		signed, err := r.change(ctx, name, c)
		if err == nil {
			var restricted Restricted
			restricted, err = r.describe(ctx, signed)
			all = append(all, restricted)
		}
		if err != nil {
			failed = append(failed, registry.Errorf(registry.CodeOf(err), "%s: %w", name, err))
		}
	}
	return all, errors.Join(failed...)
}

// List says what is in force. An empty environment means every environment. Errors: CodeNotFound;
// those of Restrictions.
func (r Restricter) List(ctx context.Context, environment string) ([]Restricted, error) {
	names, err := r.names(environment)
	if err != nil {
		return nil, err
	}
	var all []Restricted
	for _, name := range names {
		signed, err := r.Registry.Restrictions(ctx, name)
		if err != nil {
			return nil, err
		}
		restricted, err := r.describe(ctx, signed)
		if err != nil {
			return nil, err
		}
		all = append(all, restricted)
	}
	return all, nil
}

// names lists the environment, or all of them.
func (r Restricter) names(environment string) ([]string, error) {
	if environment != "" {
		_, err := r.Environments.Find(environment)
		return []string{environment}, err
	}
	var names []string
	for _, e := range r.Environments.List {
		names = append(names, e.Name)
	}
	return names, nil
}

// mayLift refuses to lift what is in force in none of the environments: it was misspelled.
func (r Restricter) mayLift(ctx context.Context, names []string, c Change) error {
	left := slices.Clone(c.Lift)
	for _, name := range names {
		signed, err := r.Registry.Restrictions(ctx, name)
		if err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(l evidence.Restriction) bool { return inForce(signed, l) })
	}
	if len(left) > 0 {
		return registry.Errorf(registry.CodeNotFound, "nothing to lift: %s is not restricted; mlpromote quarantine list shows what is", left[0])
	}
	return nil
}

// change signs and submits the next list of an environment. If another list came first, it reads
// that and tries again.
func (r Restricter) change(ctx context.Context, environment string, c Change) (restriction.SignedRestrictions, error) {
	for try := 1; ; try++ {
		current, err := r.Registry.Restrictions(ctx, environment)
		if err != nil {
			return current, err
		}
		add := slices.DeleteFunc(slices.Clone(c.Add), func(a evidence.Restriction) bool { return inForce(current, a) })
		lift := slices.DeleteFunc(slices.Clone(c.Lift), func(l evidence.Restriction) bool { return !inForce(current, l) })
		if len(add)+len(lift) == 0 && !(c.Again && current.Digest != "") {
			return current, nil
		}
		bundle, err := r.next(ctx, current, c.Reason, add, lift)
		if err != nil {
			return current, err
		}
		signed, err := r.Registry.Restrict(ctx, environment, bundle)
		if !registry.HasCode(err, registry.CodeConflict) || try == tries {
			return signed, err
		}
	}
}

// next signs the list that follows the current one.
func (r Restricter) next(ctx context.Context, current restriction.SignedRestrictions, reason string, add, lift []evidence.Restriction) ([]byte, error) {
	key, err := r.Key(ctx)
	if err != nil {
		return nil, err
	}
	list, err := current.Next(r.Environments.EnvironmentURI(current.Environment), reason, key, r.Now(), add, lift)
	if err != nil {
		return nil, err
	}
	statement, err := evidence.NewRestrictionList(list)
	if err != nil {
		return nil, err
	}
	return r.Sign(ctx, evidence.RoleApprover, statement)
}

func inForce(s restriction.SignedRestrictions, r evidence.Restriction) bool {
	return slices.ContainsFunc(s.InForce, func(there evidence.Restriction) bool { return there.String() == r.String() })
}
