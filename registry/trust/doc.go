// Package trust has the keys and identities that may sign, for which role and which resources, and the signed bundle
// by which a registry hands them to others.
package trust
