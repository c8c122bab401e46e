// Package pipeline has the tests of its verbs from outside, for which one world of models, drivers and registries is made: build, verify,
// diagnose, tune and draft are packages below it. All of them stand on pipeline/run.
//
// Arrows: diagnose, tune and draft use verify or build; build and verify use goldenset and run, and not each other.
package pipeline
