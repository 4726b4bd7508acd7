(* The law of `discrete_gaussian` of noise/gaussian.py: one trial, and the first trial that is kept. *)

Require Import Reals Lra Lia ZArith.
Open Scope R_scope.

Section Trials.

(** a = 1/(2 variance). Buckets have a width of at least 1; m is the least |x| of a bucket, l the offset in it. *)
Variable a : R.
Variable width : R.
Variable total : R.
Hypothesis wide : 0 < width.
Hypothesis all_buckets : 0 < total.

(** A trial takes the bucket with probability e^(-m^2 a)/total, an offset in it with 1/width, and keeps x = +-(m + l)
    with probability e^(-l (l + 2m) a). *)
Definition kept (m l : R) : R := exp (- (m * m) * a) / total * (1 / width) * exp (- (l * (l + 2 * m)) * a).

(** Whatever the bucket, x is taken and kept with probability e^(-x^2 a), times one constant. *)
Theorem trial_law : forall m l, kept m l = exp (- ((m + l) * (m + l)) * a) * / (total * width).
Proof.
  intros m l. unfold kept.
  replace (- ((m + l) * (m + l)) * a) with (- (m * m) * a + - (l * (l + 2 * m)) * a) by ring.
  rewrite exp_plus. field. lra.
Qed.

(** It is a probability: the exponent is never positive. *)
Theorem acceptance_is_a_probability : forall m l, 0 <= a -> 0 <= m -> 0 <= l -> 0 < exp (- (l * (l + 2 * m)) * a) <= 1.
Proof.
  intros m l A M L. split; [apply exp_pos |].
  rewrite <- exp_0. assert (H : - (l * (l + 2 * m)) * a <= 0).
  { assert (0 <= l * (l + 2 * m) * a) by (repeat apply Rmult_le_pos; lra). lra. }
  destruct (Rle_lt_or_eq_dec _ _ H) as [H' | H']; [left; apply exp_increasing; assumption | rewrite H'; lra].
Qed.

End Trials.

(** The bucket of x on either side, as `_value` and `_trials` find it: bucket 2h holds hB + l, bucket 2h + 1 holds
    -1 - hB - l, with 0 <= l < B. Every integer has exactly one side, bucket and offset. *)
Definition value (B h l : Z) (mirrored : bool) : Z := (if mirrored then -1 - (h * B + l) else h * B + l)%Z.

Theorem every_integer_has_a_bucket : forall B z, (0 < B)%Z ->
  exists h l side, (0 <= h)%Z /\ (0 <= l < B)%Z /\ value B h l side = z.
Proof.
  intros B z P. unfold value.
  destruct (Z_lt_le_dec z 0).
  - exists ((-1 - z) / B)%Z, ((-1 - z) mod B)%Z, true.
    pose proof (Z_div_mod_eq_full (-1 - z) B). pose proof (Z.mod_pos_bound (-1 - z) B P).
    pose proof (Z.div_pos (-1 - z) B). repeat split; lia.
  - exists (z / B)%Z, (z mod B)%Z, false.
    pose proof (Z_div_mod_eq_full z B). pose proof (Z.mod_pos_bound z B P). pose proof (Z.div_pos z B).
    repeat split; lia.
Qed.

Theorem buckets_are_disjoint : forall B h l side h' l' side', (0 < B)%Z -> (0 <= h)%Z -> (0 <= h')%Z ->
  (0 <= l < B)%Z -> (0 <= l' < B)%Z -> value B h l side = value B h' l' side' -> h = h' /\ l = l' /\ side = side'.
Proof.
  intros B h l side h' l' side' P Hh Hh' Hl Hl' E. unfold value in E.
  assert (0 <= h * B)%Z by (apply Z.mul_nonneg_nonneg; lia).
  assert (0 <= h' * B)%Z by (apply Z.mul_nonneg_nonneg; lia).
  assert (same : forall x y s t : Z, (0 <= s < B)%Z -> (0 <= t < B)%Z -> (x * B + s = y * B + t)%Z -> x = y /\ s = t).
  { intros x y s t S T F. assert (x = y) by nia. split; [assumption | subst; lia]. }
  destruct side, side'; try lia.
  - destruct (same h h' l l'); [lia | lia | lia |]. auto.
  - destruct (same h h' l l'); [lia | lia | lia |]. auto.
Qed.

(** |x| = m + l with the bucket's least |x|: hB on the right, hB + 1 on the left. *)
Theorem magnitude : forall B h l side, (0 <= h)%Z -> (0 < B)%Z -> (0 <= l)%Z ->
  Z.abs (value B h l side) = (h * B + (if side then 1 else 0) + l)%Z.
Proof.
  intros B h l side H P L. unfold value. assert (0 <= h * B)%Z by (apply Z.mul_nonneg_nonneg; lia).
  destruct side; lia.
Qed.

(** Theorem (Discrete Gaussian from buckets). Trials are independent and keep something with probability k, so that the
    first kept value is x with probability p + (1 - k) p + (1 - k)^2 p + ... = p/k. *)
Theorem first_kept : forall p k, 0 < k <= 1 -> infinite_sum (fun n => p * (1 - k) ^ n) (p / k).
Proof.
  intros p k [K1 K2].
  assert (C : Rabs (1 - k) < 1) by (apply Rabs_def1; lra).
  pose proof (GP_infinite (1 - k) C) as S. unfold Pser in S.
  replace (/ (1 - (1 - k))) with (/ k) in S by (f_equal; ring).
  intros eps E.
  assert (E' : 0 < eps / (Rabs p + 1)).
  { apply Rdiv_lt_0_compat; [assumption |]. pose proof (Rabs_pos p). lra. }
  destruct (S _ E') as [N HN]. exists N. intros n Hn. specialize (HN n Hn).
  unfold R_dist in *.
  replace (sum_f_R0 (fun i => p * (1 - k) ^ i) n - p / k)
    with (p * (sum_f_R0 (fun i => 1 * (1 - k) ^ i) n - / k)).
  2: { rewrite Rmult_minus_distr_l. f_equal. rewrite scal_sum. apply sum_eq. intros. ring. }
  rewrite Rabs_mult.
  apply Rle_lt_trans with ((Rabs p) * (eps / (Rabs p + 1))).
  - apply Rmult_le_compat_l; [apply Rabs_pos | left; exact HN].
  - pose proof (Rabs_pos p). apply Rmult_lt_reg_r with (Rabs p + 1); [lra |]. field_simplify; nra.
Qed.

(** So two integers have the odds of the discrete Gaussian, whatever k is. *)
Theorem odds : forall a c k x y, 0 < c -> 0 < k ->
  (exp (- (x * x) * a) * c / k) / (exp (- (y * y) * a) * c / k) = exp (- (x * x) * a) / exp (- (y * y) * a).
Proof. intros a c k x y C K. pose proof (exp_pos (- (y * y) * a)). field. repeat split; lra. Qed.
