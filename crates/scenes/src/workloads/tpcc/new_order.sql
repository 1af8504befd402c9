\set w random(1, WAREHOUSES)
\set d random(1, 10)
\set c random_gaussian(1, 3000, 3)
\set i1 random(1, 10000)
\set i2 random(10001, 20000)
\set i3 random(20001, 30000)
\set i4 random(30001, 40000)
\set i5 random(40001, 50000)
\set i6 random(50001, 60000)
\set i7 random(60001, 70000)
\set i8 random(70001, 80000)
\set i9 random(80001, 90000)
\set i10 random(90001, 100000)
BEGIN;
SELECT w_tax FROM warehouse WHERE w_id = :w;
SELECT c_balance FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w AND d_id = :d
    RETURNING d_next_o_id - 1 AS o \gset
INSERT INTO orders VALUES (:w, :d, :o, :c, NULL, 10, now());
INSERT INTO new_order VALUES (:w, :d, :o);
SELECT i_id, i_price, i_name FROM item
    WHERE i_id IN (:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10);
UPDATE stock SET s_quantity = CASE WHEN s_quantity > 15 THEN s_quantity - 5 ELSE s_quantity + 86 END,
        s_ytd = s_ytd + 5, s_order_cnt = s_order_cnt + 1
    WHERE s_w_id = :w AND s_i_id IN (:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10);
INSERT INTO order_line VALUES
    (:w, :d, :o, 1, :i1, NULL, 5, 9.99, 'dist'), (:w, :d, :o, 2, :i2, NULL, 5, 9.99, 'dist'),
    (:w, :d, :o, 3, :i3, NULL, 5, 9.99, 'dist'), (:w, :d, :o, 4, :i4, NULL, 5, 9.99, 'dist'),
    (:w, :d, :o, 5, :i5, NULL, 5, 9.99, 'dist'), (:w, :d, :o, 6, :i6, NULL, 5, 9.99, 'dist'),
    (:w, :d, :o, 7, :i7, NULL, 5, 9.99, 'dist'), (:w, :d, :o, 8, :i8, NULL, 5, 9.99, 'dist'),
    (:w, :d, :o, 9, :i9, NULL, 5, 9.99, 'dist'), (:w, :d, :o, 10, :i10, NULL, 5, 9.99, 'dist');
COMMIT;
