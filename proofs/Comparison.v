(* Lazy comparison of a uniform real with a threshold: what `below` and `threshold` of noise/comparison.py decide. *)

Require Import Reals Lra Lia ZArith.
Open Scope R_scope.

(** The first k words of U are the integer u: U lies in [u, u + 1) / 2^(64 k). *)
Definition placed (words : nat) (u : Z) (U : R) : Prop :=
  IZR u <= U * 2 ^ (64 * words) < IZR u + 1.

(** An enclosure of p with `bits` bits. *)
Definition encloses (bits : nat) (low high : Z) (p : R) : Prop :=
  IZR low <= p * 2 ^ bits <= IZR high.

Lemma power_positive : forall n, 0 < 2 ^ n.
Proof. intro n. apply pow_lt. lra. Qed.

Lemma shifted : forall u n, IZR (u * 2 ^ Z.of_nat n) = IZR u * 2 ^ n.
Proof.
  intros u n. rewrite mult_IZR. f_equal. rewrite <- pow_IZR. reflexivity.
Qed.

(** `below` returns true where (u + 1) << guard <= low: then U < p. *)
Theorem true_means_below : forall words guard u low high U p,
  placed words u U -> encloses (64 * words + guard) low high p ->
  ((u + 1) * 2 ^ Z.of_nat guard <= low)%Z -> U < p.
Proof.
  intros words guard u low high U p [_ before] [under _] decided.
  apply IZR_le in decided. rewrite shifted, plus_IZR in decided.
  rewrite pow_add in under.
  pose proof (power_positive (64 * words)) as P. pose proof (power_positive guard) as Q.
  apply Rmult_lt_reg_r with (2 ^ (64 * words) * 2 ^ guard). { apply Rmult_lt_0_compat; assumption. }
  apply Rlt_le_trans with ((IZR u + 1) * 2 ^ guard); [| lra].
  rewrite <- Rmult_assoc. apply Rmult_lt_compat_r; assumption.
Qed.

(** `below` returns false where u << guard >= high: then p <= U. *)
Theorem false_means_not_below : forall words guard u low high U p,
  placed words u U -> encloses (64 * words + guard) low high p ->
  (high <= u * 2 ^ Z.of_nat guard)%Z -> p <= U.
Proof.
  intros words guard u low high U p [after _] [_ over] decided.
  apply IZR_le in decided. rewrite shifted in decided.
  rewrite pow_add in over.
  pose proof (power_positive (64 * words)) as P. pose proof (power_positive guard) as Q.
  apply Rmult_le_reg_r with (2 ^ (64 * words) * 2 ^ guard). { apply Rmult_lt_0_compat; assumption. }
  apply Rle_trans with (IZR u * 2 ^ guard); [lra |].
  rewrite <- Rmult_assoc. apply Rmult_le_compat_r; lra.
Qed.

(** The next word refines the place, and keeps it true. *)
Theorem refined : forall words u next U,
  placed words u U -> IZR next <= (U * 2 ^ (64 * words) - IZR u) * 2 ^ 64 < IZR next + 1 ->
  placed (S words) (u * 2 ^ 64 + next) U.
Proof.
  intros words u next U _ inside. unfold placed.
  replace (64 * S words)%nat with (64 * words + 64)%nat by lia.
  rewrite pow_add, plus_IZR, mult_IZR.
  replace (IZR (2 ^ 64)) with (2 ^ 64) by (rewrite pow_IZR; reflexivity). lra.
Qed.

(** `threshold` is t with t <= 2^64 p < t + 1: a first word below it decides for U < p, one above it for p < U. *)
Theorem first_word : forall t w U p,
  IZR t <= p * 2 ^ 64 < IZR t + 1 -> IZR w <= U * 2 ^ 64 < IZR w + 1 ->
  ((w < t)%Z -> U < p) /\ ((t < w)%Z -> p < U).
Proof.
  intros t w U p [T1 T2] [W1 W2].
  pose proof (power_positive 64) as P.
  split; intro order; apply Rmult_lt_reg_r with (2 ^ 64); try assumption;
    apply Zlt_le_succ, IZR_le in order; unfold Z.succ in order; rewrite plus_IZR in order; lra.
Qed.

(** Of the 2^64 first words, t decide for true, and one does not decide: the rest of p is left to later words. *)
Theorem undecided_mass : forall t p, IZR t <= p * 2 ^ 64 < IZR t + 1 -> 0 <= p - IZR t / 2 ^ 64 < / 2 ^ 64.
Proof.
  intros t p [T1 T2]. pose proof (power_positive 64) as P.
  split.
  - apply Rmult_le_reg_r with (2 ^ 64); [assumption |]. field_simplify; lra.
  - apply Rmult_lt_reg_r with (2 ^ 64); [assumption |]. field_simplify; lra.
Qed.
