//! Permutation-equivariant actor and critics in Burn.
