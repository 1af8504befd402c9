\set w random(1, WAREHOUSES)
\set d random(1, 10)
\set c random_gaussian(1, 3000, 3)
BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + 10 WHERE w_id = :w;
UPDATE district SET d_ytd = d_ytd + 10 WHERE d_w_id = :w AND d_id = :d;
UPDATE customer SET c_balance = c_balance - 10, c_ytd_payment = c_ytd_payment + 10
    WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
INSERT INTO history VALUES (:c, :d, :w, now(), 10);
COMMIT;
