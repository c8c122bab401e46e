// Package tune measures the candidates of a spec and chooses by its objective, and suggests limits from measurements.
package tune
