// Package fold joins repeated names: layers.0.attn to layers.7.attn become layers.{0..7}.attn.
package fold
