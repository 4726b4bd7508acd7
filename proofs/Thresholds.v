(* The integers that decide the first word of a sample: floor(2^64 p) for the probabilities p of Geometric.v, and
   for the shares of the buckets of Gaussian.v where a bucket is one integer. Written by `make proofs` from what the
   samplers use; each line is checked by interval arithmetic. The rest of the sum over all integers is a variable, as
   large as the geometric series that bounds it. *)

Require Import Reals.
From Interval Require Import Tactic.
Open Scope R_scope.

(** scale 1/1000 *)
Goal 0 <= 2 ^ 64 * (exp (- (1000))) < 0 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 0, above *)
Goal 0 <= 2 ^ 64 * (/ (1 + exp (1000))) < 0 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 0, sign *)

(** scale 1/2 *)
Goal 2198905795380358825 <= 2 ^ 64 * (/ (1 + exp (2))) < 2198905795380358825 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 1, digit_0 *)
Goal 331787012026708147 <= 2 ^ 64 * (/ (1 + exp (4))) < 331787012026708147 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 1, digit_1 *)
Goal 6186118031800229 <= 2 ^ 64 * (/ (1 + exp (8))) < 6186118031800229 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 1, digit_2 *)
Goal 2075907333723 <= 2 ^ 64 * (/ (1 + exp (16))) < 2075907333723 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 1, digit_3 *)
Goal 233612 <= 2 ^ 64 * (/ (1 + exp (32))) < 233612 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 1, digit_4 *)
Goal 0 <= 2 ^ 64 * (exp (- (64))) < 0 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 1, above *)
Goal 2198905795380358825 <= 2 ^ 64 * (/ (1 + exp (2))) < 2198905795380358825 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 1, sign *)

(** scale 1 *)
Goal 4961093570831980853 <= 2 ^ 64 * (/ (1 + exp (1))) < 4961093570831980853 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 2, digit_0 *)
Goal 2198905795380358825 <= 2 ^ 64 * (/ (1 + exp (2))) < 2198905795380358825 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 2, digit_1 *)
Goal 331787012026708147 <= 2 ^ 64 * (/ (1 + exp (4))) < 331787012026708147 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 2, digit_2 *)
Goal 6186118031800229 <= 2 ^ 64 * (/ (1 + exp (8))) < 6186118031800229 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 2, digit_3 *)
Goal 2075907333723 <= 2 ^ 64 * (/ (1 + exp (16))) < 2075907333723 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 2, digit_4 *)
Goal 233612 <= 2 ^ 64 * (/ (1 + exp (32))) < 233612 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 2, digit_5 *)
Goal 0 <= 2 ^ 64 * (exp (- (64))) < 0 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 2, above *)
Goal 4961093570831980853 <= 2 ^ 64 * (/ (1 + exp (1))) < 4961093570831980853 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 2, sign *)

(** scale 7/3 *)
Goal 7276641253634607686 <= 2 ^ 64 * (/ (1 + exp (3 / 7))) < 7276641253634607686 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 3, digit_0 *)
Goal 5495960766026850433 <= 2 ^ 64 * (/ (1 + exp (6 / 7))) < 5495960766026850433 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 3, digit_1 *)
Goal 2815132983782531125 <= 2 ^ 64 * (/ (1 + exp (12 / 7))) < 2815132983782531125 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 3, digit_2 *)
Goal 579492862655929078 <= 2 ^ 64 * (/ (1 + exp (24 / 7))) < 579492862655929078 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 3, digit_3 *)
Goal 19384018570439407 <= 2 ^ 64 * (/ (1 + exp (48 / 7))) < 19384018570439407 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 3, digit_4 *)
Goal 20411768445456 <= 2 ^ 64 * (/ (1 + exp (96 / 7))) < 20411768445456 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 3, digit_5 *)
Goal 22586165 <= 2 ^ 64 * (/ (1 + exp (192 / 7))) < 22586165 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 3, digit_6 *)
Goal 0 <= 2 ^ 64 * (exp (- (384 / 7))) < 0 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 3, above *)
Goal 7276641253634607686 <= 2 ^ 64 * (/ (1 + exp (3 / 7))) < 7276641253634607686 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 3, sign *)

(** scale 10 *)
Goal 8762587358261559784 <= 2 ^ 64 * (/ (1 + exp (1 / 10))) < 8762587358261559784 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 4, digit_0 *)
Goal 8304097042261566226 <= 2 ^ 64 * (/ (1 + exp (1 / 5))) < 8304097042261566226 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 4, digit_1 *)
Goal 7402906027527139367 <= 2 ^ 64 * (/ (1 + exp (2 / 5))) < 7402906027527139367 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 4, digit_2 *)
Goal 5718961402957943925 <= 2 ^ 64 * (/ (1 + exp (4 / 5))) < 5718961402957943925 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 4, digit_3 *)
Goal 3098713858522938879 <= 2 ^ 64 * (/ (1 + exp (8 / 5))) < 3098713858522938879 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 4, digit_4 *)
Goal 722480064893764018 <= 2 ^ 64 * (/ (1 + exp (16 / 5))) < 722480064893764018 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 4, digit_5 *)
Goal 30599478995170520 <= 2 ^ 64 * (/ (1 + exp (32 / 5))) < 30599478995170520 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 4, digit_6 *)
Goal 50927124483878 <= 2 ^ 64 * (/ (1 + exp (64 / 5))) < 50927124483878 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 4, digit_7 *)
Goal 140598596 <= 2 ^ 64 * (/ (1 + exp (128 / 5))) < 140598596 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 4, digit_8 *)
Goal 0 <= 2 ^ 64 * (exp (- (256 / 5))) < 0 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 4, above *)
Goal 8762587358261559784 <= 2 ^ 64 * (/ (1 + exp (1 / 10))) < 8762587358261559784 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 4, sign *)

(** scale 1000 *)
Goal 9218760351220655549 <= 2 ^ 64 * (/ (1 + exp (1 / 1000))) < 9218760351220655549 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_0 *)
Goal 9214148667892377148 <= 2 ^ 64 * (/ (1 + exp (1 / 500))) < 9214148667892377148 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_1 *)
Goal 9204925317376685668 <= 2 ^ 64 * (/ (1 + exp (1 / 250))) < 9204925317376685668 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_2 *)
Goal 9186478745471367534 <= 2 ^ 64 * (/ (1 + exp (1 / 125))) < 9186478745471367534 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_3 *)
Goal 9149586634641802074 <= 2 ^ 64 * (/ (1 + exp (2 / 125))) < 9149586634641802074 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_4 *)
Goal 9075810675952999778 <= 2 ^ 64 * (/ (1 + exp (4 / 125))) < 9075810675952999778 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_5 *)
Goal 8928324834246152353 <= 2 ^ 64 * (/ (1 + exp (8 / 125))) < 8928324834246152353 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_6 *)
Goal 8633880858758689466 <= 2 ^ 64 * (/ (1 + exp (16 / 125))) < 8633880858758689466 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_7 *)
Goal 8049186043859652187 <= 2 ^ 64 * (/ (1 + exp (32 / 125))) < 8049186043859652187 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_8 *)
Goal 6912452409901858045 <= 2 ^ 64 * (/ (1 + exp (64 / 125))) < 6912452409901858045 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_9 *)
Goal 4874533336969541904 <= 2 ^ 64 * (/ (1 + exp (128 / 125))) < 4874533336969541904 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_10 *)
Goal 2107625848665213975 <= 2 ^ 64 * (/ (1 + exp (256 / 125))) < 2107625848665213975 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_11 *)
Goal 301913627621669108 <= 2 ^ 64 * (/ (1 + exp (512 / 125))) < 301913627621669108 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_12 *)
Goal 5105744812654089 <= 2 ^ 64 * (/ (1 + exp (1024 / 125))) < 5105744812654089 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_13 *)
Goal 1413965775650 <= 2 ^ 64 * (/ (1 + exp (2048 / 125))) < 1413965775650 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_14 *)
Goal 108382 <= 2 ^ 64 * (/ (1 + exp (4096 / 125))) < 108382 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, digit_15 *)
Goal 0 <= 2 ^ 64 * (exp (- (8192 / 125))) < 0 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, above *)
Goal 9218760351220655549 <= 2 ^ 64 * (/ (1 + exp (1 / 1000))) < 9218760351220655549 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 5, sign *)

(** scale 123457/100 *)
Goal 9219636577734366006 <= 2 ^ 64 * (/ (1 + exp (100 / 123457))) < 9219636577734366006 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_0 *)
Goal 9215901119839369067 <= 2 ^ 64 * (/ (1 + exp (200 / 123457))) < 9215901119839369067 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_1 *)
Goal 9208430212627255584 <= 2 ^ 64 * (/ (1 + exp (400 / 123457))) < 9208430212627255584 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_2 *)
Goal 9193488466825772682 <= 2 ^ 64 * (/ (1 + exp (800 / 123457))) < 9193488466825772682 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_3 *)
Goal 9163605524195188905 <= 2 ^ 64 * (/ (1 + exp (1600 / 123457))) < 9163605524195188905 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_4 *)
Goal 9103844030406842913 <= 2 ^ 64 * (/ (1 + exp (3200 / 123457))) < 9103844030406842913 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_5 *)
Goal 8984356164815900164 <= 2 ^ 64 * (/ (1 + exp (6400 / 123457))) < 8984356164815900164 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_6 *)
Goal 8745661096365090329 <= 2 ^ 64 * (/ (1 + exp (12800 / 123457))) < 8745661096365090329 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_7 *)
Goal 8270506284122191386 <= 2 ^ 64 * (/ (1 + exp (25600 / 123457))) < 8270506284122191386 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_8 *)
Goal 7337765492938380013 <= 2 ^ 64 * (/ (1 + exp (51200 / 123457))) < 7337765492938380013 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_9 *)
Goal 5603452901516880271 <= 2 ^ 64 * (/ (1 + exp (102400 / 123457))) < 5603452901516880271 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_10 *)
Goal 2949870122494209407 <= 2 ^ 64 * (/ (1 + exp (204800 / 123457))) < 2949870122494209407 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_11 *)
Goal 645029278402411532 <= 2 ^ 64 * (/ (1 + exp (409600 / 123457))) < 645029278402411532 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_12 *)
Goal 24187171558774758 <= 2 ^ 64 * (/ (1 + exp (819200 / 123457))) < 24187171558774758 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_13 *)
Goal 31797233110748 <= 2 ^ 64 * (/ (1 + exp (1638400 / 123457))) < 31797233110748 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_14 *)
Goal 54810080 <= 2 ^ 64 * (/ (1 + exp (3276800 / 123457))) < 54810080 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, digit_15 *)
Goal 0 <= 2 ^ 64 * (exp (- (6553600 / 123457))) < 0 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, above *)
Goal 9219636577734366006 <= 2 ^ 64 * (/ (1 + exp (100 / 123457))) < 9219636577734366006 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 6, sign *)

(** scale 1048576 *)
Goal 9223367638808264704 <= 2 ^ 64 * (/ (1 + exp (1 / 1048576))) < 9223367638808264704 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_0 *)
Goal 9223363240761753602 <= 2 ^ 64 * (/ (1 + exp (1 / 524288))) < 9223363240761753602 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_1 *)
Goal 9223354444668731413 <= 2 ^ 64 * (/ (1 + exp (1 / 262144))) < 9223354444668731413 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_2 *)
Goal 9223336852482687146 <= 2 ^ 64 * (/ (1 + exp (1 / 131072))) < 9223336852482687146 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_3 *)
Goal 9223301668110599509 <= 2 ^ 64 * (/ (1 + exp (1 / 65536))) < 9223301668110599509 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_4 *)
Goal 9223231299366431402 <= 2 ^ 64 * (/ (1 + exp (1 / 32768))) < 9223231299366431402 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_5 *)
Goal 9223090561878152533 <= 2 ^ 64 * (/ (1 + exp (1 / 16384))) < 9223090561878152533 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_6 *)
Goal 9222809086902053546 <= 2 ^ 64 * (/ (1 + exp (1 / 8192))) < 9222809086902053546 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_7 *)
Goal 9222246136953525589 <= 2 ^ 64 * (/ (1 + exp (1 / 4096))) < 9222246136953525589 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_8 *)
Goal 9221120237085829801 <= 2 ^ 64 * (/ (1 + exp (1 / 2048))) < 9221120237085829801 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_9 *)
Goal 9218868437585319219 <= 2 ^ 64 * (/ (1 + exp (1 / 1024))) < 9218868437585319219 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_10 *)
Goal 9214364840463345254 <= 2 ^ 64 * (/ (1 + exp (1 / 512))) < 9214364840463345254 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_11 *)
Goal 9205357661251751116 <= 2 ^ 64 * (/ (1 + exp (1 / 256))) < 9205357661251751116 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_12 *)
Goal 9187343423086631328 <= 2 ^ 64 * (/ (1 + exp (1 / 128))) < 9187343423086631328 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_13 *)
Goal 9151315908796561063 <= 2 ^ 64 * (/ (1 + exp (1 / 64))) < 9151315908796561063 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_14 *)
Goal 9079268575757738102 <= 2 ^ 64 * (/ (1 + exp (1 / 32))) < 9079268575757738102 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_15 *)
Goal 8935235449059394618 <= 2 ^ 64 * (/ (1 + exp (1 / 16))) < 8935235449059394618 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_16 *)
Goal 8647660713528248894 <= 2 ^ 64 * (/ (1 + exp (1 / 8))) < 8647660713528248894 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_17 *)
Goal 8076418037615682945 <= 2 ^ 64 * (/ (1 + exp (1 / 4))) < 8076418037615682945 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_18 *)
Goal 6964396094736529934 <= 2 ^ 64 * (/ (1 + exp (1 / 2))) < 6964396094736529934 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_19 *)
Goal 4961093570831980853 <= 2 ^ 64 * (/ (1 + exp (1))) < 4961093570831980853 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_20 *)
Goal 2198905795380358825 <= 2 ^ 64 * (/ (1 + exp (2))) < 2198905795380358825 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_21 *)
Goal 331787012026708147 <= 2 ^ 64 * (/ (1 + exp (4))) < 331787012026708147 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_22 *)
Goal 6186118031800229 <= 2 ^ 64 * (/ (1 + exp (8))) < 6186118031800229 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_23 *)
Goal 2075907333723 <= 2 ^ 64 * (/ (1 + exp (16))) < 2075907333723 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_24 *)
Goal 233612 <= 2 ^ 64 * (/ (1 + exp (32))) < 233612 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, digit_25 *)
Goal 0 <= 2 ^ 64 * (exp (- (64))) < 0 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, above *)
Goal 9223367638808264704 <= 2 ^ 64 * (/ (1 + exp (1 / 1048576))) < 9223367638808264704 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 7, sign *)

(** scale 1000000000 *)
Goal 9223372032243089789 <= 2 ^ 64 * (/ (1 + exp (1 / 1000000000))) < 9223372032243089789 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_0 *)
Goal 9223372027631403771 <= 2 ^ 64 * (/ (1 + exp (1 / 500000000))) < 9223372027631403771 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_1 *)
Goal 9223372018408031734 <= 2 ^ 64 * (/ (1 + exp (1 / 250000000))) < 9223372018408031734 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_2 *)
Goal 9223371999961287660 <= 2 ^ 64 * (/ (1 + exp (1 / 125000000))) < 9223371999961287660 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_3 *)
Goal 9223371963067799513 <= 2 ^ 64 * (/ (1 + exp (1 / 62500000))) < 9223371963067799513 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_4 *)
Goal 9223371889280823218 <= 2 ^ 64 * (/ (1 + exp (1 / 31250000))) < 9223371889280823218 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_5 *)
Goal 9223371741706870628 <= 2 ^ 64 * (/ (1 + exp (1 / 15625000))) < 9223371741706870628 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_6 *)
Goal 9223371446558965449 <= 2 ^ 64 * (/ (1 + exp (1 / 7812500))) < 9223371446558965449 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_7 *)
Goal 9223370856263155090 <= 2 ^ 64 * (/ (1 + exp (1 / 3906250))) < 9223370856263155090 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_8 *)
Goal 9223369675671534373 <= 2 ^ 64 * (/ (1 + exp (1 / 1953125))) < 9223369675671534373 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_9 *)
Goal 9223367314488292938 <= 2 ^ 64 * (/ (1 + exp (2 / 1953125))) < 9223367314488292938 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_10 *)
Goal 9223362592121810072 <= 2 ^ 64 * (/ (1 + exp (4 / 1953125))) < 9223362592121810072 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_11 *)
Goal 9223353147388844355 <= 2 ^ 64 * (/ (1 + exp (8 / 1953125))) < 9223353147388844355 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_12 *)
Goal 9223334257922913062 <= 2 ^ 64 * (/ (1 + exp (16 / 1953125))) < 9223334257922913062 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_13 *)
Goal 9223296478991051583 <= 2 ^ 64 * (/ (1 + exp (32 / 1953125))) < 9223296478991051583 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_14 *)
Goal 9223220921127337500 <= 2 ^ 64 * (/ (1 + exp (64 / 1953125))) < 9223220921127337500 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_15 *)
Goal 9223069805399980323 <= 2 ^ 64 * (/ (1 + exp (128 / 1953125))) < 9223069805399980323 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_16 *)
Goal 9222767573945833876 <= 2 ^ 64 * (/ (1 + exp (256 / 1953125))) < 9222767573945833876 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_17 *)
Goal 9222163111042084241 <= 2 ^ 64 * (/ (1 + exp (512 / 1953125))) < 9222163111042084241 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_18 *)
Goal 9220954185270931047 <= 2 ^ 64 * (/ (1 + exp (1024 / 1953125))) < 9220954185270931047 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_19 *)
Goal 9218536334019393241 <= 2 ^ 64 * (/ (1 + exp (2048 / 1953125))) < 9218536334019393241 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_20 *)
Goal 9213700633842465204 <= 2 ^ 64 * (/ (1 + exp (4096 / 1953125))) < 9213700633842465204 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_21 *)
Goal 9204029252097755765 <= 2 ^ 64 * (/ (1 + exp (8192 / 1953125))) < 9204029252097755765 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_22 *)
Goal 9184686637480422616 <= 2 ^ 64 * (/ (1 + exp (16384 / 1953125))) < 9184686637480422616 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_23 *)
Goal 9146002599187648056 <= 2 ^ 64 * (/ (1 + exp (32768 / 1953125))) < 9146002599187648056 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_24 *)
Goal 9068644049023949539 <= 2 ^ 64 * (/ (1 + exp (65536 / 1953125))) < 9068644049023949539 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_25 *)
Goal 8914003124462652832 <= 2 ^ 64 * (/ (1 + exp (131072 / 1953125))) < 8914003124462652832 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_26 *)
Goal 8605329544080653374 <= 2 ^ 64 * (/ (1 + exp (262144 / 1953125))) < 8605329544080653374 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_27 *)
Goal 7992812402438851719 <= 2 ^ 64 * (/ (1 + exp (524288 / 1953125))) < 7992812402438851719 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_28 *)
Goal 6805295119315968248 <= 2 ^ 64 * (/ (1 + exp (1048576 / 1953125))) < 6805295119315968248 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_29 *)
Goal 4698240802065331683 <= 2 ^ 64 * (/ (1 + exp (2097152 / 1953125))) < 4698240802065331683 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_30 *)
Goal 1928913325956035983 <= 2 ^ 64 * (/ (1 + exp (4194304 / 1953125))) < 1928913325956035983 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_31 *)
Goal 248174218771781162 <= 2 ^ 64 * (/ (1 + exp (8388608 / 1953125))) < 248174218771781162 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_32 *)
Goal 3429870886209036 <= 2 ^ 64 * (/ (1 + exp (16777216 / 1953125))) < 3429870886209036 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_33 *)
Goal 637965687343 <= 2 ^ 64 * (/ (1 + exp (33554432 / 1953125))) < 637965687343 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_34 *)
Goal 22063 <= 2 ^ 64 * (/ (1 + exp (67108864 / 1953125))) < 22063 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, digit_35 *)
Goal 0 <= 2 ^ 64 * (exp (- (134217728 / 1953125))) < 0 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, above *)
Goal 9223372032243089789 <= 2 ^ 64 * (/ (1 + exp (1 / 1000000000))) < 9223372032243089789 + 1. Proof. split; interval with (i_prec 200). Qed. (* scale 8, sign *)

(** variance 1/4 *)
Module Variance_0.
Definition w0 := exp (- (0)).
Definition w1 := exp (- (2)).
Definition w2 := exp (- (2)).
Definition w3 := exp (- (8)).
Definition w4 := exp (- (8)).
Definition w5 := exp (- (18)).
Definition w6 := exp (- (18)).
Definition w7 := exp (- (32)).
Definition w8 := exp (- (32)).
Definition w9 := exp (- (50)).
Definition w10 := exp (- (50)).
Definition w11 := exp (- (72)).
Definition w12 := exp (- (72)).
Definition w13 := exp (- (98)).
Definition w14 := exp (- (98)).
Definition w15 := exp (- (128)).
Definition s0 := w0.
Definition s1 := s0 + w1.
Definition s2 := s1 + w2.
Definition s3 := s2 + w3.
Definition s4 := s3 + w4.
Definition s5 := s4 + w5.
Definition s6 := s5 + w6.
Definition s7 := s6 + w7.
Definition s8 := s7 + w8.
Definition s9 := s8 + w9.
Definition s10 := s9 + w10.
Definition s11 := s10 + w11.
Definition s12 := s11 + w12.
Definition s13 := s12 + w13.
Definition s14 := s13 + w14.
Definition s15 := s14 + w15.
Ltac share := intros rest [A B]; assert (rest <= / 2 ^ 95) by (eapply Rle_trans; [exact B | interval with (i_prec 100)]); clear B; unfold s15, s14, s13, s12, s11, s10, s9, s8, s7, s6, s5, s4, s3, s2, s1, s0, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15; split; interval with (i_prec 200).
Definition rests (rest : R) := 0 <= rest <= 2 * exp (- (128)) / (1 - exp (- (34))).
Goal forall rest, rests rest -> 14509668528679584297 <= 2 ^ 64 * (s0 / (s15 + rest)) < 14509668528679584297 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 16473338628677801183 <= 2 ^ 64 * (s1 / (s15 + rest)) < 16473338628677801183 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18437008728676018070 <= 2 ^ 64 * (s2 / (s15 + rest)) < 18437008728676018070 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18441876180210643295 <= 2 ^ 64 * (s3 / (s15 + rest)) < 18441876180210643295 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446743631745268521 <= 2 ^ 64 * (s4 / (s15 + rest)) < 18446743631745268521 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446743852727226316 <= 2 ^ 64 * (s5 / (s15 + rest)) < 18446743852727226316 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709184110 <= 2 ^ 64 * (s6 / (s15 + rest)) < 18446744073709184110 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709367863 <= 2 ^ 64 * (s7 / (s15 + rest)) < 18446744073709367863 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709551615 <= 2 ^ 64 * (s8 / (s15 + rest)) < 18446744073709551615 + 1. Proof. share. Qed.
End Variance_0.

(** variance 1 *)
Module Variance_1.
Definition w0 := exp (- (0)).
Definition w1 := exp (- (1 / 2)).
Definition w2 := exp (- (1 / 2)).
Definition w3 := exp (- (2)).
Definition w4 := exp (- (2)).
Definition w5 := exp (- (9 / 2)).
Definition w6 := exp (- (9 / 2)).
Definition w7 := exp (- (8)).
Definition w8 := exp (- (8)).
Definition w9 := exp (- (25 / 2)).
Definition w10 := exp (- (25 / 2)).
Definition w11 := exp (- (18)).
Definition w12 := exp (- (18)).
Definition w13 := exp (- (49 / 2)).
Definition w14 := exp (- (49 / 2)).
Definition w15 := exp (- (32)).
Definition w16 := exp (- (32)).
Definition w17 := exp (- (81 / 2)).
Definition w18 := exp (- (81 / 2)).
Definition w19 := exp (- (50)).
Definition w20 := exp (- (50)).
Definition w21 := exp (- (121 / 2)).
Definition w22 := exp (- (121 / 2)).
Definition w23 := exp (- (72)).
Definition w24 := exp (- (72)).
Definition w25 := exp (- (169 / 2)).
Definition s0 := w0.
Definition s1 := s0 + w1.
Definition s2 := s1 + w2.
Definition s3 := s2 + w3.
Definition s4 := s3 + w4.
Definition s5 := s4 + w5.
Definition s6 := s5 + w6.
Definition s7 := s6 + w7.
Definition s8 := s7 + w8.
Definition s9 := s8 + w9.
Definition s10 := s9 + w10.
Definition s11 := s10 + w11.
Definition s12 := s11 + w12.
Definition s13 := s12 + w13.
Definition s14 := s13 + w14.
Definition s15 := s14 + w15.
Definition s16 := s15 + w16.
Definition s17 := s16 + w17.
Definition s18 := s17 + w18.
Definition s19 := s18 + w19.
Definition s20 := s19 + w20.
Definition s21 := s20 + w21.
Definition s22 := s21 + w22.
Definition s23 := s22 + w23.
Definition s24 := s23 + w24.
Definition s25 := s24 + w25.
Ltac share := intros rest [A B]; assert (rest <= / 2 ^ 95) by (eapply Rle_trans; [exact B | interval with (i_prec 100)]); clear B; unfold s25, s24, s23, s22, s21, s20, s19, s18, s17, s16, s15, s14, s13, s12, s11, s10, s9, s8, s7, s6, s5, s4, s3, s2, s1, s0, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15, w16, w17, w18, w19, w20, w21, w22, w23, w24, w25; split; interval with (i_prec 200).
Definition rests (rest : R) := 0 <= rest <= 2 * exp (- (169 / 2)) / (1 - exp (- (27 / 2))).
Goal forall rest, rests rest -> 7359186107371418017 <= 2 ^ 64 * (s0 / (s25 + rest)) < 7359186107371418017 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 11822758112023450936 <= 2 ^ 64 * (s1 / (s25 + rest)) < 11822758112023450936 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 16286330116675483855 <= 2 ^ 64 * (s2 / (s25 + rest)) < 16286330116675483855 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 17282287652907539934 <= 2 ^ 64 * (s3 / (s25 + rest)) < 17282287652907539934 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18278245189139596012 <= 2 ^ 64 * (s4 / (s25 + rest)) < 18278245189139596012 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18359998362130665970 <= 2 ^ 64 * (s5 / (s25 + rest)) < 18359998362130665970 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18441751535121735928 <= 2 ^ 64 * (s6 / (s25 + rest)) < 18441751535121735928 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18444220267032538400 <= 2 ^ 64 * (s7 / (s25 + rest)) < 18444220267032538400 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446688998943340873 <= 2 ^ 64 * (s8 / (s25 + rest)) < 18446688998943340873 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446716424077591826 <= 2 ^ 64 * (s9 / (s25 + rest)) < 18446716424077591826 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446743849211842779 <= 2 ^ 64 * (s10 / (s25 + rest)) < 18446743849211842779 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446743961292098132 <= 2 ^ 64 * (s11 / (s25 + rest)) < 18446743961292098132 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073372353484 <= 2 ^ 64 * (s12 / (s25 + rest)) < 18446744073372353484 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073540859333 <= 2 ^ 64 * (s13 / (s25 + rest)) < 18446744073540859333 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709365182 <= 2 ^ 64 * (s14 / (s25 + rest)) < 18446744073709365182 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709458380 <= 2 ^ 64 * (s15 / (s25 + rest)) < 18446744073709458380 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709551578 <= 2 ^ 64 * (s16 / (s25 + rest)) < 18446744073709551578 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709551597 <= 2 ^ 64 * (s17 / (s25 + rest)) < 18446744073709551597 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709551615 <= 2 ^ 64 * (s18 / (s25 + rest)) < 18446744073709551615 + 1. Proof. share. Qed.
End Variance_1.

(** variance 10/3 *)
Module Variance_2.
Definition w0 := exp (- (0)).
Definition w1 := exp (- (3 / 20)).
Definition w2 := exp (- (3 / 20)).
Definition w3 := exp (- (3 / 5)).
Definition w4 := exp (- (3 / 5)).
Definition w5 := exp (- (27 / 20)).
Definition w6 := exp (- (27 / 20)).
Definition w7 := exp (- (12 / 5)).
Definition w8 := exp (- (12 / 5)).
Definition w9 := exp (- (15 / 4)).
Definition w10 := exp (- (15 / 4)).
Definition w11 := exp (- (27 / 5)).
Definition w12 := exp (- (27 / 5)).
Definition w13 := exp (- (147 / 20)).
Definition w14 := exp (- (147 / 20)).
Definition w15 := exp (- (48 / 5)).
Definition w16 := exp (- (48 / 5)).
Definition w17 := exp (- (243 / 20)).
Definition w18 := exp (- (243 / 20)).
Definition w19 := exp (- (15)).
Definition w20 := exp (- (15)).
Definition w21 := exp (- (363 / 20)).
Definition w22 := exp (- (363 / 20)).
Definition w23 := exp (- (108 / 5)).
Definition w24 := exp (- (108 / 5)).
Definition w25 := exp (- (507 / 20)).
Definition w26 := exp (- (507 / 20)).
Definition w27 := exp (- (147 / 5)).
Definition w28 := exp (- (147 / 5)).
Definition w29 := exp (- (135 / 4)).
Definition w30 := exp (- (135 / 4)).
Definition w31 := exp (- (192 / 5)).
Definition w32 := exp (- (192 / 5)).
Definition w33 := exp (- (867 / 20)).
Definition w34 := exp (- (867 / 20)).
Definition w35 := exp (- (243 / 5)).
Definition w36 := exp (- (243 / 5)).
Definition w37 := exp (- (1083 / 20)).
Definition w38 := exp (- (1083 / 20)).
Definition w39 := exp (- (60)).
Definition w40 := exp (- (60)).
Definition w41 := exp (- (1323 / 20)).
Definition w42 := exp (- (1323 / 20)).
Definition w43 := exp (- (363 / 5)).
Definition s0 := w0.
Definition s1 := s0 + w1.
Definition s2 := s1 + w2.
Definition s3 := s2 + w3.
Definition s4 := s3 + w4.
Definition s5 := s4 + w5.
Definition s6 := s5 + w6.
Definition s7 := s6 + w7.
Definition s8 := s7 + w8.
Definition s9 := s8 + w9.
Definition s10 := s9 + w10.
Definition s11 := s10 + w11.
Definition s12 := s11 + w12.
Definition s13 := s12 + w13.
Definition s14 := s13 + w14.
Definition s15 := s14 + w15.
Definition s16 := s15 + w16.
Definition s17 := s16 + w17.
Definition s18 := s17 + w18.
Definition s19 := s18 + w19.
Definition s20 := s19 + w20.
Definition s21 := s20 + w21.
Definition s22 := s21 + w22.
Definition s23 := s22 + w23.
Definition s24 := s23 + w24.
Definition s25 := s24 + w25.
Definition s26 := s25 + w26.
Definition s27 := s26 + w27.
Definition s28 := s27 + w28.
Definition s29 := s28 + w29.
Definition s30 := s29 + w30.
Definition s31 := s30 + w31.
Definition s32 := s31 + w32.
Definition s33 := s32 + w33.
Definition s34 := s33 + w34.
Definition s35 := s34 + w35.
Definition s36 := s35 + w36.
Definition s37 := s36 + w37.
Definition s38 := s37 + w38.
Definition s39 := s38 + w39.
Definition s40 := s39 + w40.
Definition s41 := s40 + w41.
Definition s42 := s41 + w42.
Definition s43 := s42 + w43.
Ltac share := intros rest [A B]; assert (rest <= / 2 ^ 95) by (eapply Rle_trans; [exact B | interval with (i_prec 100)]); clear B; unfold s43, s42, s41, s40, s39, s38, s37, s36, s35, s34, s33, s32, s31, s30, s29, s28, s27, s26, s25, s24, s23, s22, s21, s20, s19, s18, s17, s16, s15, s14, s13, s12, s11, s10, s9, s8, s7, s6, s5, s4, s3, s2, s1, s0, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15, w16, w17, w18, w19, w20, w21, w22, w23, w24, w25, w26, w27, w28, w29, w30, w31, w32, w33, w34, w35, w36, w37, w38, w39, w40, w41, w42, w43; split; interval with (i_prec 200).
Definition rests (rest : R) := 0 <= rest <= 2 * exp (- (363 / 5)) / (1 - exp (- (27 / 4))).
Goal forall rest, rests rest -> 4030792257453021195 <= 2 ^ 64 * (s0 / (s43 + rest)) < 4030792257453021195 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 7500127304755201702 <= 2 ^ 64 * (s1 / (s43 + rest)) < 7500127304755201702 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 10969462352057382209 <= 2 ^ 64 * (s2 / (s43 + rest)) < 10969462352057382209 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 13181608045625308982 <= 2 ^ 64 * (s3 / (s43 + rest)) < 13181608045625308982 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 15393753739193235754 <= 2 ^ 64 * (s4 / (s43 + rest)) < 15393753739193235754 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 16438697374624798395 <= 2 ^ 64 * (s5 / (s43 + rest)) < 16438697374624798395 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 17483641010056361035 <= 2 ^ 64 * (s6 / (s43 + rest)) < 17483641010056361035 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 17849306233787309790 <= 2 ^ 64 * (s7 / (s43 + rest)) < 17849306233787309790 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18214971457518258544 <= 2 ^ 64 * (s8 / (s43 + rest)) < 18214971457518258544 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18309766605427407932 <= 2 ^ 64 * (s9 / (s43 + rest)) < 18309766605427407932 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18404561753336557319 <= 2 ^ 64 * (s10 / (s43 + rest)) < 18404561753336557319 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18422767152830200330 <= 2 ^ 64 * (s11 / (s43 + rest)) < 18422767152830200330 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18440972552323843340 <= 2 ^ 64 * (s12 / (s43 + rest)) < 18440972552323843340 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18443562708634662984 <= 2 ^ 64 * (s13 / (s43 + rest)) < 18443562708634662984 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446152864945482627 <= 2 ^ 64 * (s14 / (s43 + rest)) < 18446152864945482627 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446425865412137037 <= 2 ^ 64 * (s15 / (s43 + rest)) < 18446425865412137037 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446698865878791447 <= 2 ^ 64 * (s16 / (s43 + rest)) < 18446698865878791447 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446720182210046915 <= 2 ^ 64 * (s17 / (s43 + rest)) < 18446720182210046915 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446741498541302384 <= 2 ^ 64 * (s18 / (s43 + rest)) < 18446741498541302384 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446742731570007399 <= 2 ^ 64 * (s19 / (s43 + rest)) < 18446742731570007399 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446743964598712415 <= 2 ^ 64 * (s20 / (s43 + rest)) < 18446743964598712415 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744017436614913 <= 2 ^ 64 * (s21 / (s43 + rest)) < 18446744017436614913 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744070274517411 <= 2 ^ 64 * (s22 / (s43 + rest)) < 18446744070274517411 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744071951890251 <= 2 ^ 64 * (s23 / (s43 + rest)) < 18446744071951890251 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073629263091 <= 2 ^ 64 * (s24 / (s43 + rest)) < 18446744073629263091 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073668711119 <= 2 ^ 64 * (s25 / (s43 + rest)) < 18446744073668711119 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073708159147 <= 2 ^ 64 * (s26 / (s43 + rest)) < 18446744073708159147 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073708846425 <= 2 ^ 64 * (s27 / (s43 + rest)) < 18446744073708846425 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709533704 <= 2 ^ 64 * (s28 / (s43 + rest)) < 18446744073709533704 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709542574 <= 2 ^ 64 * (s29 / (s43 + rest)) < 18446744073709542574 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709551445 <= 2 ^ 64 * (s30 / (s43 + rest)) < 18446744073709551445 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709551529 <= 2 ^ 64 * (s31 / (s43 + rest)) < 18446744073709551529 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709551614 <= 2 ^ 64 * (s32 / (s43 + rest)) < 18446744073709551614 + 1. Proof. share. Qed.
Goal forall rest, rests rest -> 18446744073709551615 <= 2 ^ 64 * (s33 / (s43 + rest)) < 18446744073709551615 + 1. Proof. share. Qed.
End Variance_2.
