(* The laws of `geometric` and `discrete_laplace` of noise/geometric.py. *)

Require Import Reals Lra Lia List ZArith.
Import ListNotations.
Open Scope R_scope.

Section Digits.

Variable q : R.
Hypothesis positive : 0 < q.
Hypothesis below_one : q < 1.

(** The number of the low digits, the lowest first, and what is above them. *)
Fixpoint number (digits : list bool) (high : nat) : nat :=
  match digits with
  | [] => high
  | digit :: rest => (if digit then 1 else 0) + 2 * number rest high
  end.

(** Digit i is 1 with probability Q / (1 + Q), Q = q^(2^i). *)
Definition digit_probability (i : nat) (digit : bool) : R :=
  if digit then q ^ (2 ^ i) / (1 + q ^ (2 ^ i)) else 1 / (1 + q ^ (2 ^ i)).

(** Independent digits from place i on, and above them a geometric variable with the remaining ratio. *)
Fixpoint probability (i : nat) (digits : list bool) (high : nat) : R :=
  match digits with
  | [] => (1 - q ^ (2 ^ i)) * (q ^ (2 ^ i)) ^ high
  | digit :: rest => digit_probability i digit * probability (S i) rest high
  end.

Lemma ratio_positive : forall n, 0 < q ^ n.
Proof. intro n. apply pow_lt. assumption. Qed.

Lemma square : forall i, q ^ (2 ^ S i) = q ^ (2 ^ i) * q ^ (2 ^ i).
Proof. intro i. rewrite <- pow_add. f_equal. simpl. lia. Qed.

Lemma law_from : forall digits i high,
  probability i digits high = (1 - q ^ (2 ^ i)) * (q ^ (2 ^ i)) ^ number digits high.
Proof.
  induction digits as [| digit rest IH]; intros i high; [reflexivity |].
  simpl probability. rewrite IH, square. set (Q := q ^ (2 ^ i)).
  assert (0 < Q) by apply ratio_positive.
  assert (E : (Q * Q) ^ number rest high = Q ^ (2 * number rest high)).
  { rewrite Rpow_mult_distr, <- pow_add. f_equal. lia. }
  rewrite E. unfold digit_probability. fold Q.
  change (number (digit :: rest) high) with ((if digit then 1 else 0) + 2 * number rest high)%nat.
  rewrite pow_add. generalize (Q ^ (2 * number rest high)) as rest_power. intro rest_power.
  destruct digit; [rewrite pow_1 | rewrite pow_O]; field; lra.
Qed.

(** Theorem (Digits of a geometric variable). *)
Theorem geometric_law : forall digits high,
  probability 0 digits high = (1 - q) * q ^ number digits high.
Proof. intros. rewrite law_from. simpl. rewrite Rmult_1_r. reflexivity. Qed.

(** Each k has exactly one list of I digits and one number above them. *)
Fixpoint low_digits (I k : nat) : list bool :=
  match I with
  | 0%nat => []
  | S I' => Nat.odd k :: low_digits I' (Nat.div2 k)
  end.

Fixpoint above (I k : nat) : nat :=
  match I with
  | 0%nat => k
  | S I' => above I' (Nat.div2 k)
  end.

Theorem every_number_has_digits : forall I k, number (low_digits I k) (above I k) = k.
Proof.
  induction I as [| I IH]; intro k; [reflexivity |].
  simpl. rewrite IH. pose proof (Nat.div2_odd k) as E. unfold Nat.b2n in E. lia.
Qed.

Theorem digits_are_unique : forall digits high digits' high',
  length digits = length digits' -> number digits high = number digits' high' -> digits = digits' /\ high = high'.
Proof.
  induction digits as [| d rest IH]; intros high [| d' rest'] high' L E; simpl in L; try discriminate.
  - auto.
  - simpl in E. assert (d = d') by (destruct d, d'; auto; lia). subst d'.
    destruct (IH high rest' high') as [A B]; [lia | destruct d; lia |]. subst. auto.
Qed.

(** Theorem (Discrete Laplace from a geometric variable). The coin has the probability of digit 0. *)
Definition coin (side : bool) : R := digit_probability 0 side.

Definition signed (side : bool) (k : nat) : Z := if side then (-1 - Z.of_nat k)%Z else Z.of_nat k.

Theorem laplace_law : forall side k,
  coin side * ((1 - q) * q ^ k) = (1 - q) / (1 + q) * q ^ Z.abs_nat (signed side k).
Proof.
  intros side k. unfold coin, digit_probability, signed. simpl (2 ^ 0)%nat. rewrite pow_1.
  destruct side.
  - replace (Z.abs_nat (-1 - Z.of_nat k)) with (S k) by lia. simpl. field. lra.
  - rewrite Zabs2Nat.id. field. lra.
Qed.

Theorem signed_is_one_to_one : forall side k side' k', signed side k = signed side' k' -> side = side' /\ k = k'.
Proof. intros [] k [] k' E; unfold signed in E; split; auto; lia. Qed.

Theorem signed_reaches_all : forall z, exists side k, signed side k = z.
Proof.
  intro z. destruct (Z_lt_le_dec z 0).
  - exists true, (Z.to_nat (-1 - z)). unfold signed. lia.
  - exists false, (Z.to_nat z). unfold signed. lia.
Qed.

End Digits.

(** With q = e^(-1/scale), digit i is 1 with probability 1 / (1 + e^(2^i/scale)): the real that `logistic` encloses. *)
Theorem digit_is_logistic : forall scale i, 0 < scale ->
  digit_probability (exp (- / scale)) i true = / (1 + exp (INR (2 ^ i) / scale)).
Proof.
  intros scale i P. unfold digit_probability.
  assert (E : exp (- / scale) ^ (2 ^ i) = / exp (INR (2 ^ i) / scale)).
  { rewrite <- exp_Ropp. generalize (2 ^ i)%nat as n. induction n as [| n IH].
    - simpl. replace (- (0 / scale)) with 0 by (field; lra). symmetry. apply exp_0.
    - rewrite S_INR. simpl pow. rewrite IH, <- exp_plus. f_equal. field. lra. }
  rewrite E. pose proof (exp_pos (INR (2 ^ i) / scale)). field. split; lra.
Qed.
