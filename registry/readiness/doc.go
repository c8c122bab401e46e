// Package readiness lists what stands between a release and an environment, as pages and answers show it.
package readiness
